// Hostile clients: bytes become frames, requests and calls of a whole node (wire_world.h has the format).
// Whatever they are, the node must not fail a CHECK, touch memory it does not own, or hang.
#include <cstddef>
#include <cstdint>

#include "wire_world.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 16'384) return 0;
  allranks::server::WireWorld world;
  world.Play({data, size});
  world.Finish();
  return 0;
}
