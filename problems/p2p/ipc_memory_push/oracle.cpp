// What each rank's source was to send.
#include <allranks/oracle.h>

using namespace allranks::oracle;

static std::size_t LengthOf(const Call& call, int rank) {
  const std::uint32_t fewer = call.In<std::uint32_t>(rank, "fewer")[0];
  return static_cast<std::size_t>(call.Param("n")) - fewer;
}
static int SourceOf(const Call& call, int rank) {
  const int back = static_cast<int>(call.Param("shift") % call.world());
  return (rank + call.world() - back) % call.world();
}

extern "C" void Verify(const Call& call, Check& check) {
  for (int rank = 0; rank < call.world(); ++rank) {
    const int source = SourceOf(call, rank);
    const std::size_t length = LengthOf(call, source);
    check.Exact(rank, "received", std::vector{static_cast<std::uint32_t>(length)});
    check.Exact(rank, "out", call.In<std::uint32_t>(source, "in").first(length));
  }
}

extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const int source = SourceOf(call, rank);
  if (source == rank) return;
  floor.ingress = 4.0 * static_cast<double>(LengthOf(call, source));
  floor.egress = 4.0 * static_cast<double>(LengthOf(call, rank));
  floor.hops = 1;
}
