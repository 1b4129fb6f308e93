// The sums in float: integers so small that they are exact in any order.
#include <allranks/oracle.h>

#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t channels = call.Param("channels"), lats = call.Param("lats");
  const std::int64_t lons = call.Param("lons"), taps = call.Param("taps");
  for (int rank = 0; rank < call.world(); ++rank) {
    std::vector<float> y(channels * lats * lons);
    for (int from = 0; from < call.world(); ++from) {
      const auto x = call.In<float>(from, "x"), value = call.In<float>(from, "value");
      const auto lat = call.In<std::int32_t>(from, "lat");
      const auto shift = call.In<std::int32_t>(from, "shift");
      for (std::int64_t row = 0; row < channels * lats; ++row) {
        for (std::int64_t e = 0; e < taps; ++e) {
          const std::int64_t at = (rank * lats + row % lats) * taps + e;
          const float* circle = &x[(row / lats * lats + lat[at]) * lons];
          std::int64_t lon = shift[at];
          for (std::int64_t m = 0; m < lons; ++m) {
            y[row * lons + m] += value[at] * circle[lon];
            if (++lon == lons) lon = 0;
          }
        }
      }
    }
    check.Exact(rank, "y", y);
  }
}
