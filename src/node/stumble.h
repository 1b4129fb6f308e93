// Waits that end a little late. Any correct program must bear that a warp goes on some microseconds
// after what it waited for has come; one that relies on its speed shows it. Machine::stumbling()
// has it.
#pragma once

#include <cstdint>

#include "node/time.h"

namespace allranks::node {

class Stumbling {
 public:
  virtual ~Stumbling() = default;
  // From now on a path whose wait has ended goes on 2 to 20 us later in a quarter of the cases,
  // which `seed` chooses; 0: none. Not before `from`.
  virtual void SetStumble(std::uint64_t seed, Time from) = 0;
};

}  // namespace allranks::node
