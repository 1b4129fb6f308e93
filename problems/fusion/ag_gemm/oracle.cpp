// The product of the gathered rows with each rank's b, by Freivalds' check.
#include <allranks/oracle.h>

#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto k = static_cast<std::size_t>(call.Param("depth")) * 64;
  std::vector<std::span<const F16>> rows;
  for (int rank = 0; rank < call.world(); ++rank) rows.push_back(call.In<F16>(rank, "a"));
  for (int rank = 0; rank < call.world(); ++rank) {
    Product<F16, F16, float>(call, check, rank, "c", rows, call.In<F16>(rank, "b"), k, 32, true);
  }
}
