// Each tensor is the sum over ranks, within the error of any order of additions, at each rank's own
// place. The rest of the slots is untouched.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {
std::uint64_t Length(const Call& call, std::int64_t t) {
  const std::int64_t width = call.Param("width");
  return 1 + 7919 * (t + 1) % (t % 2 == 0 ? width : (width + 15) / 16);
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::uint64_t width = call.Param("width");
  for (std::int64_t t = 0; t < call.Param("tensors"); ++t) {
    const std::uint64_t length = Length(call, t);
    std::vector<Piece> in, out;
    for (int r = 0; r < call.world(); ++r) {
      const std::uint64_t at = call.In<std::int32_t>(r, "place")[t] * width;
      in.push_back({r, "in", at});
      out.push_back({r, "out", at});
      check.Untouched(r, "out", at + length, at + width);
    }
    check.Sum(in, out, length);
  }
}

extern "C" void Floors(const Call& call, int, Floor& floor) {
  double bytes = 0;
  for (std::int64_t t = 0; t < call.Param("tensors"); ++t) {
    bytes += 4 * static_cast<double>(Length(call, t));
  }
  floor.ingress = floor.egress = bytes;
  floor.busiest = 2 * bytes * (call.world() - 1) / call.world();
  floor.hbm = 2 * bytes;
}
