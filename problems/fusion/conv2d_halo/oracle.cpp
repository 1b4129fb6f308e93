// The convolution in float: integers so small that sums are exact in any order.
#include <allranks/oracle.h>

#include <algorithm>
#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t world = call.world(), rows = call.Param("rows"), cols = call.Param("cols");
  const std::int64_t inputs = call.Param("inputs"), outputs = call.Param("outputs");
  std::vector<float> y(rows * cols * outputs);
  for (int rank = 0; rank < world; ++rank) {
    const auto w = call.In<float>(rank, "w");
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      const std::int64_t row = rank * rows + i / cols, col = i % cols;
      float* sums = &y[i * outputs];
      std::fill_n(sums, outputs, 0.0f);
      for (std::int64_t tap = 0; tap < 9; ++tap) {
        const std::int64_t r = row + tap / 3 - 1, c = col + tap % 3 - 1;
        if (r < 0 || r >= world * rows || c < 0 || c >= cols) continue;
        const auto x = call.In<float>(static_cast<int>(r / rows), "x");
        for (std::int64_t j = 0; j < inputs; ++j) {
          const float value = x[(r % rows * cols + c) * inputs + j];
          const float* weights = &w[(tap * inputs + j) * outputs];
          for (std::int64_t o = 0; o < outputs; ++o) sums[o] += weights[o] * value;
        }
      }
    }
    check.Exact(rank, "y", y);
  }
}

// The first and the last rank have one neighbour, all others two.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const bool end = rank == 0 || rank == call.world() - 1;
  const auto row = static_cast<double>(4 * call.Param("cols") * call.Param("inputs"));
  floor.ingress = floor.egress = end ? row : 2 * row;
}
