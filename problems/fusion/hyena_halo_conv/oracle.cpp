// The convolution in float: integers so small that sums are exact in any order.
#include <allranks/oracle.h>

#include <algorithm>
#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t world = call.world(), rows = call.Param("rows"), taps = call.Param("taps");
  const std::int64_t channels = call.Param("channels"), size = rows * channels;
  // The sequence, with zeros before it.
  std::vector<float> sequence((taps - 1 + 2 * world * rows) * channels);
  float* begin = sequence.data() + (taps - 1) * channels;
  for (int rank = 0; rank < world; ++rank) {
    const auto x = call.In<float>(rank, "x");
    std::copy_n(x.data(), size, begin + rank * size);
    std::copy_n(x.data() + size, size, begin + (2 * world - 1 - rank) * size);
  }
  std::vector<float> y(2 * size);
  for (int rank = 0; rank < world; ++rank) {
    const auto w = call.In<float>(rank, "w");
    std::fill(y.begin(), y.end(), 0.0f);
    for (std::int64_t row = 0; row < 2 * rows; ++row) {
      const std::int64_t first = row < rows ? rank * rows : (2 * world - 2 - rank) * rows;
      for (std::int64_t j = 0; j < taps; ++j) {
        const float* x = begin + (first + row - j) * channels;
        for (std::int64_t c = 0; c < channels; ++c)
          y[row * channels + c] += w[j * channels + c] * x[c];
      }
    }
    check.Exact(rank, "y", y);
  }
}

// The first rank gets rows from its upper neighbour only, the last one from its lower neighbour.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const bool end = rank == 0 || rank == call.world() - 1;
  const auto halo = static_cast<double>((call.Param("taps") - 1) * call.Param("channels") * 4);
  floor.ingress = floor.egress = end ? halo : 2 * halo;
}
