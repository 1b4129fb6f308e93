// Waits that end a little late. Any correct program must bear that a warp goes on some microseconds
// after what it waited for has come; one that relies on its speed shows it. Machine::late_wakes()
// has it.
#pragma once

#include <cstdint>

#include "node/time.h"

namespace allranks::node {

class LateWakes {
 public:
  virtual ~LateWakes() = default;
  // From now on a path whose wait has ended goes on 2 to 20 us later in a quarter of the cases,
  // which `seed` chooses; 0: none. Not before `from`.
  virtual void SetLateWakes(std::uint64_t seed, Time from) = 0;
};

}  // namespace allranks::node
