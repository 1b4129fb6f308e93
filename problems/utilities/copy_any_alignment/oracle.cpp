// Expected: the records of the next rank's slots; poison around them. The least traffic is what
// the lists of a rank and of its reader ask for.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto in = call.In<std::uint8_t>((rank + 1) % call.world(), "in");
    const auto from = call.In<std::uint8_t>(rank, "from");
    const auto to = call.In<std::uint8_t>(rank, "to");
    const auto length = call.In<std::uint8_t>(rank, "length");
    for (std::size_t i = 0; i < length.size(); ++i) {
      const std::uint64_t slot = 128 * i, begin = slot + to[i], end = begin + length[i];
      check.Untouched(rank, "out", slot, begin);
      check.ExactAt(rank, "out", begin, in.subspan(slot + from[i], length[i]));
      check.Untouched(rank, "out", end, slot + 128);
    }
  }
}

extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const auto bytes = [&](int reader) {
    double sum = 0;
    for (const std::uint8_t length : call.In<std::uint8_t>(reader, "length")) sum += length;
    return sum;
  };
  floor.ingress = bytes(rank);
  floor.egress = bytes((rank + call.world() - 1) % call.world());
  // What is more than three times scratch is read where it lies: news that its owner has entered,
  // request, answer, and news that it may leave.
  floor.hops = floor.ingress > 3 * 1024 ? 4 : floor.ingress > 0 ? 1 : 0;
}
