// Expected: the message of the rank before.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  for (int rank = 0; rank < call.world(); ++rank) {
    const int source = (rank + call.world() - 1) % call.world();
    check.Exact(rank, "out", call.In<std::uint32_t>(source, "in"));
  }
}
