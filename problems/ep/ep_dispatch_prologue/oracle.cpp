// Slots are handed out by going through the tokens of all ranks in order.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t per = call.Param("per");
  std::vector<std::int32_t> next(call.world() * per);  // the lengths of all lists so far
  for (int rank = 0; rank < call.world(); ++rank) {
    std::vector<std::int32_t> slots;
    for (const std::int32_t expert : call.In<std::int32_t>(rank, "ids")) {
      slots.push_back(next[expert]++);
    }
    check.Exact(rank, "slots", slots);
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Exact(rank, "received", std::span<const std::int32_t>(next).subspan(rank * per, per));
  }
}
