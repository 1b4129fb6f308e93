// Hostile clients: bytes become frames, requests and calls of a whole node (wire_world.h has the
// format). Whatever they are, the node must not fail a CHECK, touch memory it does not own, or
// hang.
#include <cstddef>
#include <cstdint>

#include "wire_world.h"

// Every input allocates a whole node: short stack traces make that a fifth faster.
extern "C" const char* __asan_default_options() { return "malloc_context_size=3"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 2'048) return 0;
  allranks::server::WireWorld world;
  world.Play({data, size});
  world.Finish();
  return 0;
}
