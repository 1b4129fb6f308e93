// The additions of the statement, in their order: every rank's entries in float, compared by value.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {
// Calls f(owner, entry) for all entries of a rank's list.
template <class F>
void ForEntries(const Call& call, int source, F f) {
  const auto counts = call.In<std::int32_t>(source, "counts");
  std::int64_t entry = 0;
  for (int owner = 0; owner < call.world(); ++owner) {
    for (std::int32_t i = 0; i < counts[owner]; ++i) f(owner, entry++);
  }
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t rows = call.Param("rows"), width = 4 * call.Param("quads");
  std::vector<std::vector<float>> sums(call.world(), std::vector<float>(rows * width));
  for (int source = 0; source < call.world(); ++source) {
    const auto ids = call.In<std::int32_t>(source, "ids");
    const auto grads = call.In<float>(source, "grads");
    ForEntries(call, source, [&](int owner, std::int64_t entry) {
      float* sum = &sums[owner][ids[entry] * width];
      const float* grad = &grads[entry * width];
      for (std::int64_t j = 0; j < width; ++j) sum[j] += grad[j];
    });
  }
  for (int rank = 0; rank < call.world(); ++rank) check.Exact(rank, "out", sums[rank]);
}

// Sums may go from source to source: a row comes, and leaves a source, at least once, however often
// it is named.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t rows = call.Param("rows");
  std::vector<bool> came(rows), left(rows * call.world());
  double arrivals = 0, departures = 0;
  for (int source = 0; source < call.world(); ++source) {
    const auto ids = call.In<std::int32_t>(source, "ids");
    ForEntries(call, source, [&](int owner, std::int64_t entry) {
      if ((source == rank) == (owner == rank)) return;
      const std::int64_t row = ids[entry];
      const std::size_t at = owner == rank ? row : owner * rows + row;
      std::vector<bool>& seen = owner == rank ? came : left;
      if (seen[at]) return;
      seen[at] = true;
      ++(owner == rank ? arrivals : departures);
    });
  }
  const double bytes = 16.0 * static_cast<double>(call.Param("quads"));
  floor.ingress = bytes * arrivals;
  floor.egress = bytes * departures;
}
