// A process sees as many devices as the world has ranks.
#include <allranks/oracle.h>

#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::vector<std::int32_t> devices = {call.world()};
  check.Exact<std::int32_t>(0, "peers", devices);
}
