// The tables of handlers behind alu.h: which exist on this processor, which is in use, and a hook
// by which tests compare them.
#pragma once

#include <cstdint>
#include <string_view>

#include "node/code/op.h"

namespace allranks::node::alu {

enum class Isa : std::uint8_t { kV2, kV3, kV4 };

// Whether this processor can run the handlers of `isa`.
bool IsaSupported(Isa isa);

// The handler of a key (alu_table.h) in the table in use, or nullptr.
AluFn FindHandler(std::uint32_t key);

// The same in the table of a given instruction set.
AluFn FindHandler(Isa isa, std::uint32_t key);

// Tests only: makes SelectAlu() give handlers of `isa` (which must be supported) in this thread
// until the object goes.
class ScopedIsa {
 public:
  explicit ScopedIsa(Isa isa);
  ~ScopedIsa();
  ScopedIsa(const ScopedIsa&) = delete;
  ScopedIsa& operator=(const ScopedIsa&) = delete;
};

}  // namespace allranks::node::alu
