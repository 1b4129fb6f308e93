// The dotted words of ld, st, atom, red, multimem and fences, sorted out once for their decoders
// (decode_memory.cpp, decode_atomic.cpp, decode_fence.cpp). PTX wants them in a certain order;
// nvcc and inline assembly do not always keep it, and neither does ptxas insist.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "node/code/code.h"
#include "ptx/module.h"

namespace allranks::node {

struct MemoryWords {
  ptx::Space space = ptx::Space::kNone;
  bool function_param = false;  // param::func
  Order order = Order::kWeak;
  bool has_order = false;
  Scope scope = Scope::kSys;
  bool has_scope = false;
  bool weak = false, is_volatile = false, mmio = false, nc = false, noftz = false;
  AtomicOp atomic = AtomicOp::kNone;
  int vector = 1;                     // .v2, .v4, .v8
  bool cache_operator = false;        // .ca .cg ...
  bool cache_hint = false;            // L2::cache_hint: a policy operand comes last
  bool hints = false;                 // L1::..., L2::...: eviction priority, prefetch size
  ptx::Type type = ptx::Type::kNone;  // the last type
  std::string_view type_word;         // the same as text
  std::string_view unknown;           // the first word that is none of these, or empty
  int accumulate = 0;                 // multimem: 32 for acc::f32, 16 for acc::f16
};

MemoryWords ReadMemoryWords(const ptx::Instruction& in);

// How a plain type of an atomic or bulk reduction is computed with; nullopt for all others.
std::optional<Number> NumberOf(ptx::Type type);

}  // namespace allranks::node
