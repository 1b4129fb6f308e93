// Block s of rank d is block d of rank s, tokens and experts.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::uint64_t slots = call.Param("slots"), words = slots * call.Param("hidden");
  for (int rank = 0; rank < call.world(); ++rank) {
    for (int source = 0; source < call.world(); ++source) {
      const auto tokens = call.In<std::uint32_t>(source, "tokens");
      const auto expert = call.In<std::uint32_t>(source, "expert");
      check.ExactAt<std::uint32_t>(rank, "out", source * words,
                                   tokens.subspan(rank * words, words));
      check.ExactAt<std::uint32_t>(rank, "out_expert", source * slots,
                                   expert.subspan(rank * slots, slots));
    }
  }
}
