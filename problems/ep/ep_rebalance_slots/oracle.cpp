// Rank 0's plan names the source of every slot.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t slots = call.Param("slots"), words = 4 * call.Param("quads");
  const auto plan = call.In<std::int32_t>(0, "plan");
  for (int rank = 0; rank < call.world(); ++rank) {
    for (std::int64_t j = 0; j < slots; ++j) {
      const std::int64_t source = plan[rank * slots + j];
      const auto w = call.In<std::uint32_t>(static_cast<int>(source / slots), "w");
      check.ExactAt<std::uint32_t>(rank, "out", j * words,
                                   w.subspan(source % slots * words, words));
    }
  }
}

// As many slots come to a rank as leave it, since the plan is a permutation.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t slots = call.Param("slots");
  const double slot_bytes = 16 * static_cast<double>(call.Param("quads"));
  const auto plan = call.In<std::int32_t>(0, "plan");
  std::vector<double> moved(call.world());
  for (std::size_t n = 0; n < plan.size(); ++n) {
    const std::int64_t holder = static_cast<std::int64_t>(n) / slots;
    if (plan[n] / slots != holder) moved[holder] += slot_bytes;
  }
  floor.ingress = floor.egress = moved[rank];
  floor.busiest = *std::max_element(moved.begin(), moved.end());
  floor.hbm = 2 * static_cast<double>(slots) * slot_bytes;
}
