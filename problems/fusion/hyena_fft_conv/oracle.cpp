// The sums as they are defined, in float: integers so small that they are exact in any order.
#include <allranks/oracle.h>

#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t rows = call.Param("rows"), channels = call.Param("channels");
  const auto w = call.In<float>(0, "w");
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto gate = call.In<float>(rank, "gate");
    std::vector<float> y(rows * channels);
    for (int from = 0; from <= rank; ++from) {
      const auto x = call.In<float>(from, "x");
      for (std::int64_t t = 0; t < rows; ++t) {
        for (std::int64_t s = 0; s < rows; ++s) {
          const std::int64_t tap = (rank - from) * rows + t - s;
          for (std::int64_t c = 0; c < channels && tap >= 0; ++c) {
            y[t * channels + c] += w[tap * channels + c] * x[s * channels + c];
          }
        }
      }
    }
    for (std::size_t i = 0; i < y.size(); ++i) y[i] *= gate[i];
    check.Exact(rank, "y", y);
  }
}

// What earlier ranks add to a sum comes in, what the own numbers add to later ones goes out: more
// than a byte for each sum. Half of one, as the gate may be zero. The first rank needs nothing, and
// nobody needs the last one.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const auto half = static_cast<double>(call.Param("rows") * call.Param("channels")) / 2;
  floor.ingress = rank > 0 ? half : 0;
  floor.egress = rank + 1 < call.world() ? half : 0;
  floor.hops = rank > 0 ? 1 : 0;
}
