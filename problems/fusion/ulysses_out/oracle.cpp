// Rows of all ranks' heads side by side, copied bit by bit; zeros behind the end of the sequence.
#include <allranks/oracle.h>

#include <algorithm>
#include <vector>

using namespace allranks::oracle;

// Tokens of the sequence that `rank` gets.
static std::int64_t TokensOf(const Call& call, int rank) {
  const std::int64_t tokens = call.Param("tokens"),
                     part = (tokens + call.world() - 1) / call.world();
  return std::clamp<std::int64_t>(tokens - rank * part, 0, part);
}

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t world = call.world(), width = call.Param("heads") * call.Param("dim");
  const std::int64_t part = (call.Param("tokens") + world - 1) / world;
  const std::vector<BF16> zeros(part * world * width);
  for (int rank = 0; rank < world; ++rank) {
    const std::int64_t valid = TokensOf(call, rank);
    for (int source = 0; source < world; ++source) {
      const auto in = call.In<BF16>(source, "in");
      for (std::int64_t t = 0; t < valid; ++t) {
        check.ExactAt<BF16>(rank, "out", (t * world + source) * width,
                            in.subspan((rank * part + t) * width, width));
      }
    }
    const std::int64_t padded = (part - valid) * world * width;
    check.ExactAt<BF16>(rank, "out", valid * world * width, std::span(zeros).first(padded));
  }
}

extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const double row = 2.0 * static_cast<double>(call.Param("heads") * call.Param("dim"));
  const auto own = static_cast<double>(TokensOf(call, rank));
  floor.ingress = (call.world() - 1) * own * row;
  floor.egress = (static_cast<double>(call.Param("tokens")) - own) * row;
}
