// Blocks of all sources, each behind the padded ones before it; rows between them keep their
// poison.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {

std::int64_t CountOf(const Call& call, int source, int target) {
  const std::int64_t sum = call.Param("slope") * source + 2 * target + source * target + 1;
  return sum % (call.Param("rows") + 1);
}

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t width = call.Param("width"), align = call.Param("align");
  for (int target = 0; target < call.world(); ++target) {
    std::int64_t to = 0;
    for (int source = 0; source < call.world(); ++source) {
      std::int64_t from = 0;
      for (int before = 0; before < target; ++before) from += CountOf(call, source, before);
      const std::int64_t count = CountOf(call, source, target);
      const auto block = call.In<std::uint32_t>(source, "in").subspan(from * width, count * width);
      check.ExactAt<std::uint32_t>(target, "out", to * width, block);
      const std::int64_t next = to + (count + align - 1) / align * align;
      check.Untouched(target, "out", (to + count) * width, next * width);
      to = next;
    }
    check.Untouched(target, "out", to * width);
  }
}

// Every row for another rank crosses a link once.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const double row_bytes = 4.0 * static_cast<double>(call.Param("width"));
  floor.ingress = floor.egress = floor.hbm = floor.busiest = 0;
  for (int source = 0; source < call.world(); ++source) {
    double sent = 0, came = 0;
    for (int peer = 0; peer < call.world(); ++peer) {
      const double out = row_bytes * static_cast<double>(CountOf(call, source, peer));
      const double in = row_bytes * static_cast<double>(CountOf(call, peer, source));
      if (source == rank) floor.hbm += out + in;
      if (peer == source) continue;
      sent += out;
      came += in;
    }
    floor.busiest = std::max({floor.busiest, sent, came});
    if (source != rank) continue;
    floor.ingress = came;
    floor.egress = sent;
    floor.hops = came > 0 ? 1 : 0;
  }
}
