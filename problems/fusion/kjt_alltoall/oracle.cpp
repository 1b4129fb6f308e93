// Lists in the order of (feature, source, sample); what lies behind the last one untouched.
#include <allranks/oracle.h>

#include <numeric>

using namespace allranks::oracle;

namespace {
// Words of the features from `first` on, `count` of them, in the input of a rank.
std::int64_t Words(const Call& call, int rank, std::int64_t first, std::int64_t count) {
  const std::int64_t batch = call.Param("batch");
  const auto lengths = call.In<std::int32_t>(rank, "lengths").subspan(first * batch, count * batch);
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t per = call.Param("per"), batch = call.Param("batch");
  std::vector<std::int64_t> at(call.world());  // by source: words that have been looked at
  for (int rank = 0; rank < call.world(); ++rank) {
    std::vector<std::int32_t> lengths, offsets = {0};
    for (std::int64_t f = rank * per; f < (rank + 1) * per; ++f) {
      for (int source = 0; source < call.world(); ++source) {
        const std::int64_t words = Words(call, source, f, 1);
        check.ExactAt<std::uint32_t>(
            rank, "out_values", offsets.back(),
            call.In<std::uint32_t>(source, "values").subspan(at[source], words));
        at[source] += words;
        for (const std::int32_t length :
             call.In<std::int32_t>(source, "lengths").subspan(f * batch, batch)) {
          lengths.push_back(length);
          offsets.push_back(offsets.back() + length);
        }
      }
    }
    check.Untouched(rank, "out_values", offsets.back());
    check.Exact(rank, "out_lengths", lengths);
    check.Exact(rank, "offsets", offsets);
  }
}

// Values cross links as they are. Lengths could be coded in a few bits, and are not counted there.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t per = call.Param("per"), world = call.world();
  std::int64_t came = 0;
  for (int source = 0; source < world; ++source) came += Words(call, source, rank * per, per);
  const std::int64_t kept = Words(call, rank, rank * per, per);
  const std::int64_t all = Words(call, rank, 0, world * per);
  floor.ingress = 4.0 * static_cast<double>(came - kept);
  floor.egress = 4.0 * static_cast<double>(all - kept);
  floor.hbm = 4.0 * static_cast<double>(all + came + 3 * world * per * call.Param("batch"));
}
