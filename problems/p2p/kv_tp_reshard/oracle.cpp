// Every slot has the tokens of its head, and nobody else's output is written.
#include <allranks/oracle.h>

#include <set>
#include <vector>

using namespace allranks::oracle;

namespace {
struct Plan {
  std::int64_t from, to, held, kept, tokens, words;
  explicit Plan(const Call& call)
      : from(call.Param("from")),
        to(call.Param("to")),
        held(call.Param("held")),
        kept(call.Param("kept")),
        tokens(call.Param("tokens")),
        words(4 * call.Param("quads")) {}
  std::int64_t HeadOf(std::int64_t slot) const { return slot * from * held / (to * kept); }
};
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const Plan plan(call);
  for (int rank = 0; rank < call.world(); ++rank) {
    if (rank < plan.from || rank >= plan.from + plan.to) {
      check.Untouched(rank, "out", 0);
      continue;
    }
    std::vector<std::uint32_t> expected;
    expected.reserve(plan.kept * plan.tokens * plan.words);
    for (std::int64_t k = 0; k < plan.kept; ++k) {
      const std::int64_t head = plan.HeadOf((rank - plan.from) * plan.kept + k);
      const auto cache = call.In<std::uint32_t>(static_cast<int>(head / plan.held), "cache");
      for (std::int64_t t = 0; t < plan.tokens; ++t) {
        const auto row = cache.subspan((t * plan.held + head % plan.held) * plan.words, plan.words);
        expected.insert(expected.end(), row.begin(), row.end());
      }
    }
    check.Exact(rank, "out", expected);
  }
}

// A decode rank needs each of its heads once, a prefill rank must send each head that is needed.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const Plan plan(call);
  std::set<std::int64_t> in, out;
  for (std::int64_t slot = 0; slot < plan.to * plan.kept; ++slot) {
    const std::int64_t head = plan.HeadOf(slot);
    if (slot / plan.kept == rank - plan.from) in.insert(head);
    if (head / plan.held == rank) out.insert(head);
  }
  const double bytes = 4.0 * static_cast<double>(plan.tokens * plan.words);
  floor.ingress = rank >= plan.from ? static_cast<double>(in.size()) * bytes : 0;
  floor.egress = rank < plan.from ? static_cast<double>(out.size()) * bytes : 0;
}
