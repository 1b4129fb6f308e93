// The table of PTX opcodes (opcodes.def).
#pragma once

#include <cstdint>
#include <string_view>

namespace allranks::node {

// Who decodes an instruction; see Decoder::One.
enum class OpcodeGroup : std::uint8_t {
  kNone,  // nobody: not supported
  kAlu,
  kAsync,
  kAtomic,
  kBarrier,
  kBranch,
  kBranchIndexed,
  kCacheHint,
  kCall,
  kExit,
  kFence,
  kGrid,
  kLoad,
  kMatrix,
  kMultimem,
  kNothing,  // accepted, no effect on results
  kPolicy,
  kReduction,
  kSleep,
  kStore,
  kTensormap,
  kTrap,
  kWarp,
};

// What an instruction does, as far as waiting and control flow ask.
enum class Effect : std::uint8_t {
  kPlain,     // computes
  kLoad,      // reads memory
  kAtomic,    // reads and perhaps changes memory
  kTryWait,   // mbarrier test_wait, try_wait
  kSleep,     // nanosleep
  kNeutral,   // fences, bar.warp.sync, prefetches: neither result nor change
  kStore,     // st: whether it changes anything is for run time
  kExchange,  // data between lanes of a warp: shuffles, votes and their like
  kBranch,    // bra
  kBranchIndexed,
  kReturn,  // ret, exit
  kTrap,
  kChange,  // reductions, barriers, calls, copies: not in a wait
};

struct Behaviour {
  std::uint8_t destinations = 1;  // leading operands that are written
  Effect effect = Effect::kPlain;
  bool reads_destination = false;  // accumulates in place
  bool early_write = false;        // may write a destination before the last source is read
};

struct Opcode {
  OpcodeGroup group = OpcodeGroup::kNone;
  Behaviour behaviour = {.destinations = 1, .effect = Effect::kChange};
};

// Of a name that is not in the table: no group, changes something.
Opcode FindOpcode(std::string_view name);

}  // namespace allranks::node
