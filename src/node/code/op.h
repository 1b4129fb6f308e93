// One operation of decoded code and what its handler sees: the part of code.h that the arithmetic
// kernels need. They are compiled three times, so this header includes little and changes seldom.
//
// Layout (version 1). A warp owns a register file of 128-byte slots. A b32 register (also b8, b16,
// f16, bf16: value in the low bits, zero above) is one slot, u32[32], one element per lane. A b64
// register is two consecutive slots read as u64[32]; a b128 is four (low u64[32], high u64[32]).
// Predicates are not in slots: predicate i is the u32 lane mask preds[i].
// An operand with kConstant set lives in the constant bank instead, which all warps of a launch
// share and which has the same layout; a literal or kernel parameter is a slot of it whose lanes
// are equal. Registers are allocated by liveness (flow.h): lanes that part only ever write their
// own elements, so two registers that are never live together on one control path may share a slot.
#pragma once

#include <cstddef>
#include <cstdint>

namespace allranks::node {

inline constexpr int kCodeLayoutVersion = 1;
inline constexpr int kLanes = 32;
inline constexpr std::size_t kSlotBytes = 128;
inline constexpr std::uint32_t kAllLanes = 0xffffffffu;

// Where an operand is: slot number, or predicate number where the instruction wants a predicate.
using Slot = std::uint16_t;
inline constexpr Slot kConstant = 0x8000;  // flag: slot of the constant bank
inline constexpr Slot kNoSlot = 0x7fff;
inline constexpr int kMaxSlots = 0x7000;
inline constexpr int kMaxPredicates = 0x7000;

struct Op;

// The state an arithmetic handler sees.
struct Lanes {
  std::byte* registers;        // slots of this warp, 64-byte aligned
  const std::byte* constants;  // slots of the constant bank
  std::uint32_t* predicates;
};

// Executes `op` for the lanes in `mask` (never 0). Must leave other lanes' elements alone.
using AluFn = void (*)(const Lanes& lanes, const Op& op, std::uint32_t mask);

enum class OpKind : std::uint8_t {
  kAlu,            // alu(lanes, op, mask)
  kTracked,        // the same, for an op whose operands decide a spin loop: compares[aux]
  kSpecial,        // d = special register `aux` (Special) of `flags` bytes, evaluated by the engine
  kMemory,         // loads, stores, atomics, reductions: memory[aux]
  kFence,          // memory[aux] has order and scope
  kBranch,         // branches[aux]
  kBarrier,        // bar/barrier: barriers[aux]
  kWarpSync,       // shfl, vote, match, redux, bar.warp.sync, activemask, elect: warp_ops[aux]
  kMatrix,         // ldmatrix, stmatrix, mma, wmma, wgmma: matrices[aux]
  kAsync,          // mbarrier, cp.async, bulk and tensor copies, st.async, st.bulk: async[aux]
  kCall,           // calls[aux]
  kReturn,         // ret of a device function
  kBranchIndexed,  // brx.idx: tables[aux]
  kGridWait,       // griddepcontrol: wait (imm 0), launch_dependents (imm 1)
  kSleep,          // nanosleep s[0]
  kExit,           // exit, or ret of an entry
  kTrap,           // trap, brkpt
  kNop,
  kUnsupported,  // faults if reached, with the instruction's name
};

struct Op {
  AluFn alu = nullptr;
  Slot d = kNoSlot, d2 = kNoSlot;  // destinations (d2: second predicate of setp, carry, ...)
  Slot s[4] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  Slot guard = kNoSlot;  // predicate, or kNoSlot
  bool guard_negated = false;
  OpKind kind = OpKind::kNop;
  std::uint8_t cycles = 1;   // issue cycles beyond the first, plus one
  std::uint8_t flags = 0;    // kNegate0 ... below
  std::uint8_t count = 1;    // PTX instructions that this operation stands for
  std::uint8_t run = 0;      // unguarded arithmetic operations from here on, one after the other
  std::uint32_t imm = 0;     // small literal of the operation (lop3 table, rounding, ...)
  std::uint32_t aux = 0;     // index into a side table of Code
  std::uint32_t source = 0;  // index of the ptx::Instruction
};

// Op::flags of arithmetic handlers.
inline constexpr std::uint8_t kNegatePredicate = 1;  // the predicate source is negated (!p)

}  // namespace allranks::node
