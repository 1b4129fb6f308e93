// Executable code of one kernel: what decode.h makes of PTX and engine.h runs; later also the
// interface of a JIT, so its layout is versioned.
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
#include <string>
#include <vector>

#include "ptx/module.h"

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
  kAlu,       // alu(lanes, op, mask)
  kTracked,   // the same, for an op whose operands decide a spin loop: compares[aux]
  kSpecial,   // d = special register `aux` (SpecialRegister), evaluated by the engine
  kMemory,    // loads, stores, atomics, reductions: memory[aux]
  kFence,     // memory[aux] has order and scope
  kBranch,    // branches[aux]
  kBarrier,   // bar/barrier: barriers[aux]
  kWarpSync,  // shfl, vote, match, redux, bar.warp.sync, activemask, elect: warp_ops[aux]
  kSleep,     // nanosleep s[0]
  kExit,      // exit, or ret of an entry
  kTrap,      // trap, brkpt
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
  std::uint32_t imm = 0;     // small literal of the operation (lop3 table, rounding, ...)
  std::uint32_t aux = 0;     // index into a side table of Code
  std::uint32_t source = 0;  // index of the ptx::Instruction
};

// Op::flags of arithmetic handlers.
inline constexpr std::uint8_t kNegatePredicate = 1;  // the predicate source is negated (!p)

// --- side tables --------------------------------------------------------------------------------
enum class Order : std::uint8_t { kWeak, kVolatile, kRelaxed, kAcquire, kRelease, kAcqRel, kSc };
enum class Scope : std::uint8_t { kCta, kCluster, kGpu, kSys };
enum class AtomicOp : std::uint8_t {
  kNone,
  kExch,
  kCas,
  kAdd,
  kMin,
  kMax,
  kInc,
  kDec,
  kAnd,
  kOr,
  kXor,
};

// One load, store, atomic, reduction or fence.
struct MemoryOp {
  enum class What : std::uint8_t { kLoad, kStore, kAtomic, kReduce, kFence };
  What what = What::kLoad;
  ptx::Space space = ptx::Space::kNone;  // kNone: generic
  ptx::Type type = ptx::Type::kB32;
  AtomicOp atomic = AtomicOp::kNone;
  Order order = Order::kWeak;
  Scope scope = Scope::kGpu;
  std::uint8_t bytes = 4;           // per element
  std::uint8_t count = 1;           // elements of a vector access
  std::uint8_t register_bytes = 4;  // width of the data registers: 4, 8 or 16
  bool address32 = false;           // the address register is 32 bits wide
  Slot address = kNoSlot;           // kNoSlot: `offset` alone
  std::int64_t offset = 0;
  Slot data[8] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  Slot operand = kNoSlot, compare = kNoSlot;  // of atomics; the result goes to data[0]

  bool Strong() const { return order != Order::kWeak; }
};

struct BranchOp {
  std::uint32_t target = 0;
  std::uint32_t reconverge = 0xffffffffu;
  std::int32_t spin = -1;  // index into Code::spins if this back edge may be a wait
  bool back_edge = false;
};

struct BarrierOp {
  enum class What : std::uint8_t { kSync, kArrive, kRedAnd, kRedOr, kRedPopc };
  What what = What::kSync;
  Slot id = kNoSlot, threads = kNoSlot;  // threads: kNoSlot = the whole CTA
  Slot source = kNoSlot;                 // predicate of the reductions
  bool source_negated = false;
};

struct WarpOp {
  enum class What : std::uint8_t {
    kSync,
    kShflUp,
    kShflDown,
    kShflBfly,
    kShflIdx,
    kVoteAll,
    kVoteAny,
    kVoteUni,
    kBallot,
    kActiveMask,
    kMatchAny,
    kMatchAll,
    kElect,
    kReduxAdd,
    kReduxMin,
    kReduxMax,
    kReduxAnd,
    kReduxOr,
    kReduxXor,
  };
  What what = What::kSync;
  bool is_signed = false;
  std::uint8_t bytes = 4;
  Slot mask = kNoSlot;    // member mask
  Slot source = kNoSlot;  // value, or predicate for votes
  bool source_negated = false;
  Slot b = kNoSlot, c = kNoSlot;  // shfl: lane/offset and clamp
  Slot predicate = kNoSlot;       // second destination of shfl, match.all, elect
};

enum class Special : std::uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kLanemaskEq,
  kLanemaskLt,
  kLanemaskLe,
  kLanemaskGt,
  kLanemaskGe,
  kClock,
  kClockHi,
  kClock64,
  kGlobaltimer,
  kGlobaltimerLo,
  kGlobaltimerHi,
  kEnvreg1,
  kEnvreg2,
  kDynamicSmem,
  kTotalSmem,
  kZero,
  kOne,
};

// A back edge that may be a wait, in terms of slots. See flow.h's SpinLoop.
struct SpinCode {
  std::uint32_t branch = 0, head = 0;
  std::int32_t outer = -1;  // index into Code::spins of the spin loop around it
  struct Carried {
    Slot slot;
    std::uint8_t bytes;
    bool predicate;
  };
  std::vector<Carried> carried;
  std::vector<std::uint32_t> linear_compares, nonlinear_uses;  // op indices, sorted
};

// What wait.cpp must know of a compare in a spin loop to say when its outcome will change.
struct CompareCode {
  enum class What : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
  What what = What::kEq;
  bool is_signed = false;
  bool exact = false;  // not an integer compare: operands must not change at all
  std::uint8_t bytes = 4;
};

// How a slot of the constant bank is filled when a launch is set up.
struct ConstantRef {
  enum class What : std::uint8_t { kParam, kSymbol };
  What what = What::kParam;
  Slot slot = 0;                     // without kConstant
  std::uint8_t bytes = 4;            // slot width 4 or 8
  ptx::Type type = ptx::Type::kB32;  // of the parameter, for sign extension
  std::uint32_t offset = 0;          // parameter: byte offset
  std::string symbol;                // symbol: name and addend
  std::int64_t addend = 0;
};

struct SourceLine {
  std::string file;
  int line = 0;
  std::string inlined_at;  // "a.cu:12, b.cu:40": the calls it was inlined through, innermost first
};

// Slots of the constant bank. Handlers load whole vectors: slots must be 64-byte aligned.
class Bank {
 public:
  std::size_t slots() const { return slots_.size(); }
  void Resize(std::size_t slots) { slots_.resize(slots); }
  std::byte* at(std::size_t slot) { return slots_[slot].bytes; }
  const std::byte* data() const { return slots_.empty() ? nullptr : slots_[0].bytes; }

 private:
  struct alignas(64) Memory {
    std::byte bytes[kSlotBytes] = {};
  };
  std::vector<Memory> slots_;
};

// One kernel, ready to run. Immutable and independent of process and device: shared by all of them.
struct Code {
  std::string name;
  std::vector<Op> ops;
  std::vector<MemoryOp> memory;
  std::vector<BranchOp> branches;
  std::vector<BarrierOp> barriers;
  std::vector<WarpOp> warp_ops;
  std::vector<SpinCode> spins;
  std::vector<CompareCode> compares;
  Bank constants;  // with literals in place
  std::vector<ConstantRef> refs;
  std::vector<std::string> forms;  // per op: "ld.acquire.sys.u32", for reports
  std::vector<SourceLine> lines;   // per op
  int slots = 0, predicates = 0;
  std::uint32_t param_bytes = 0;
  std::vector<std::uint32_t> param_offsets, param_sizes;
  std::uint32_t static_shared = 0;  // dynamic shared memory follows, 16-byte aligned
  std::uint32_t local_bytes = 0;    // declared .local per thread
  std::uint32_t registers = 0;      // from the cubin; an estimate if there is none
  std::uint32_t max_threads = 1024;
  std::vector<std::string> unsupported;  // forms that would fault
};

}  // namespace allranks::node
