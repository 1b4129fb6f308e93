// The convolution in float: integers so small that sums are exact in any order.
#include <allranks/oracle.h>

#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t depth = call.Param("depth"), rows = call.Param("rows");
  const std::int64_t cols = call.Param("cols"), inputs = call.Param("inputs");
  const std::int64_t outputs = call.Param("outputs");
  std::vector<float> y(depth * rows * cols * outputs);
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto x = call.In<float>(rank, "x"), w = call.In<float>(rank, "w");
    for (std::int64_t pixel = 0; pixel < depth * rows * cols; ++pixel) {
      const std::int64_t z = pixel / cols / rows, row = pixel / cols % rows, col = pixel % cols;
      float* sums = &y[pixel * outputs];
      for (std::int64_t tap = 0; tap < 27; ++tap) {
        const std::int64_t d = z + tap / 9 - 1, r = row + tap / 3 % 3 - 1, c = col + tap % 3 - 1;
        if (d < 0 || d >= depth || r < 0 || r >= rows || c < 0 || c >= cols) continue;
        for (std::int64_t j = 0; j < inputs; ++j) {
          const float value = x[((d * rows + r) * cols + c) * inputs + j];
          const float* weights = &w[(tap * inputs + j) * outputs];
          for (std::int64_t o = 0; o < outputs; ++o) sums[o] += weights[o] * value;
        }
      }
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) check.Exact(rank, "y", y);
}
