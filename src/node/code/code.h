// Executable code of one kernel: what decode.h makes of PTX and engine.h runs; later also the
// interface of a JIT. Operations and the layout of registers are in op.h; here are their side
// tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "node/code/op.h"
#include "ptx/module.h"

namespace allranks::node {

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

// How atomics and multimem read the bytes of an element. A packed type is several of these.
enum class Number : std::uint8_t {
  kU16,
  kU32,
  kS32,
  kU64,
  kS64,
  kB128,
  kF16,
  kBF16,
  kF32,
  kF64,
  kE4M3,
  kE5M2,
};

enum class MemoryOpKind : std::uint8_t { kLoad, kStore, kAtomic, kReduce, kFence };

// One load, store, atomic, reduction or fence.
struct MemoryOp {
  MemoryOpKind kind = MemoryOpKind::kLoad;
  ptx::Space space = ptx::Space::kNone;  // kNone: generic
  ptx::Type type = ptx::Type::kB32;
  AtomicOp atomic = AtomicOp::kNone;
  Number number = Number::kU32;  // of atomics, reductions and multimem loads
  Order order = Order::kWeak;
  Scope scope = Scope::kGpu;
  std::uint8_t bytes = 4;           // per element
  std::uint8_t count = 1;           // elements of a vector access
  std::uint8_t register_bytes = 4;  // width of the data registers: 4, 8 or 16
  bool address32 = false;           // the address register is 32 bits wide
  bool in_frame = false;            // `offset` counts from the local frame of the function
  bool multimem = false;            // multimem.*: acts on all replicas of a multicast mapping
  std::uint8_t accumulate = 0;      // bits in which multimem adds up small floats; 0: in their own
  bool proxy = false;               // a fence between proxies only; a load by the read-only one
  std::int16_t array = -1;          // of shared memory, that it is meant for: Code::arrays; -1: any
  bool inits = false;               // such a fence that orders mbarrier.init (fence.mbarrier_init)
  Slot address = kNoSlot;           // kNoSlot: `offset` alone
  std::int64_t offset = 0;
  Slot data[8] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  // Of atomics; the old values go to data[]. A store's or atomic's kNoSlot element is left alone.
  Slot operand[8] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  Slot compare = kNoSlot;

  // A weak load or store of 4- or 8-byte elements at a 64-bit address that may be global: worth a
  // look whether it is dense (dense.h). Set by the decoder.
  bool plain = false;

  bool Strong() const { return order != Order::kWeak; }
  // A reduction gives nothing back, so it acquires nothing.
  bool Acquires() const {
    return kind != MemoryOpKind::kReduce && kind != MemoryOpKind::kStore &&
           (order == Order::kAcquire || order == Order::kAcqRel || order == Order::kSc);
  }
  bool Releases() const {
    return order == Order::kRelease || order == Order::kAcqRel || order == Order::kSc;
  }
};

struct BranchOp {
  std::uint32_t target = 0;
  std::uint32_t reconverge = 0xffffffffu;
  std::int32_t spin = -1;  // index into Code::spins if this back edge may be a wait
  bool back_edge = false;
};

// brx.idx: one target per index. What is beyond the end is undefined in PTX; here it faults.
struct BranchTable {
  Slot index = kNoSlot;
  std::vector<std::uint32_t> targets;
  std::uint32_t reconverge = 0xffffffffu;
};

// Where bytes of an argument or result stand in the local frame of a function.
struct FramePlace {
  std::uint32_t offset = 0, size = 0;
};

// A call copies its arguments from the caller's frame into the callee's, a return the results back.
struct CallOp {
  // Functions that the node has instead of the program.
  enum class Builtin : std::uint8_t { kNone, kPrintf, kAssertFail, kMalloc, kFree };
  std::int32_t function = -1;  // index into Code::functions; -1: by `target`, or a builtin
  Slot target = kNoSlot;       // address of a function, 8 bytes
  Builtin builtin = Builtin::kNone;
  std::vector<FramePlace> arguments, results;  // in the caller's frame
};

// One function of a Code: the entry is the first. Its registers, predicates and local memory are a
// frame on the warp's stacks; slots in operations count from the frame's start.
struct FunctionCode {
  std::string name;
  std::uint32_t begin = 0, end = 0;  // ops
  std::uint32_t slots = 0, predicates = 0, local_bytes = 0;
  std::uint32_t wide_slots = 0;  // of `slots`: the first ones, in pairs
  // How many of them the function uses, of these and of those behind them. The rest are there
  // because all frames of a code have one shape.
  std::uint32_t wide_used = 0, narrow_used = 0;
  std::vector<FramePlace> params, results;
};

enum class BarrierOpKind : std::uint8_t { kSync, kArrive, kRedAnd, kRedOr, kRedPopc };

struct BarrierOp {
  BarrierOpKind kind = BarrierOpKind::kSync;
  Slot id = kNoSlot, threads = kNoSlot;  // threads: kNoSlot = the whole CTA
  Slot source = kNoSlot;                 // predicate of the reductions
  bool source_negated = false;
  bool aligned = false;  // all threads of a warp execute it together, or it is undefined
};

enum class WarpOpKind : std::uint8_t {
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

struct WarpOp {
  WarpOpKind kind = WarpOpKind::kSync;
  bool is_signed = false;
  bool is_float = false, absolute = false, nan_wins = false;  // redux of f32
  std::uint8_t bytes = 4;
  Slot mask = kNoSlot;    // member mask
  Slot source = kNoSlot;  // value, or predicate for votes
  bool source_negated = false;
  Slot b = kNoSlot, c = kNoSlot;  // shfl: lane/offset and clamp
  Slot predicate = kNoSlot;       // second destination of shfl, match.all, elect
};

// Elements of matrices.
enum class MatrixType : std::uint8_t {
  kNone,
  kF16,
  kBF16,
  kTF32,
  kF32,
  kF64,
  kE4M3,
  kE5M2,
  kE3M2,  // six bits and four bits: each in a byte of its own
  kE2M3,
  kE2M1,
  kS8,
  kU8,
  kS4,
  kU4,
  kB1,
  kS32,
};

enum class MatrixOpKind : std::uint8_t {
  kLoadRows,       // ldmatrix
  kStoreRows,      // stmatrix
  kTranspose,      // movmatrix
  kMultiply,       // mma, wmma.mma
  kLoadFragment,   // wmma.load
  kStoreFragment,  // wmma.store
  kMultiplyGroup,  // wgmma.mma_async
};

// One instruction on matrices that a whole warp executes together: ldmatrix, stmatrix, movmatrix,
// mma, wmma, wgmma. matrix.h says which lane holds what.
struct MatrixOp {
  MatrixOpKind kind = MatrixOpKind::kMultiply;
  std::uint16_t m = 0, n = 0, k = 0;
  MatrixType a = MatrixType::kNone, b = MatrixType::kNone;  // elements of the factors
  MatrixType c = MatrixType::kNone, d = MatrixType::kNone;  // of the accumulators
  bool quads = false;         // mma.m8n8k4 of f16: four products, one per pair of quads
  bool a_column = false;      // its A is column-major, in registers
  bool b_row = false;         // its B is row-major, in registers
  bool saturate = false;      // integer accumulators stop at their limits
  bool and_popc = false;      // b1: and instead of xor
  std::uint8_t rounding = 0;  // f64: 0 nearest, 1 to zero, 2 down, 3 up
  std::vector<Slot> d_slots, a_slots, b_slots, c_slots;

  // ldmatrix, stmatrix, wmma.load and wmma.store.
  MemoryOp memory;
  bool transposed = false;
  enum class Fragment : std::uint8_t { kA, kB, kC };
  Fragment fragment = Fragment::kA;
  Slot stride = kNoSlot;  // in elements; kNoSlot: `packed_stride`
  bool column_major = false;
  std::uint16_t packed_stride = 0;

  // wgmma: operands in shared memory, by descriptor (8 bytes). a_descriptor kNoSlot: A is in
  // a_slots.
  Slot a_descriptor = kNoSlot, b_descriptor = kNoSlot;
  bool a_transposed = false, b_transposed = false;  // M or N is the contiguous dimension
  bool a_negated = false, b_negated = false;
  Slot scale_d = kNoSlot;  // predicate, or kNoSlot: `accumulate`
  bool scale_d_negated = false;
  bool accumulate = true;
};

// Where an operand of an asynchronous operation is: a lane's address, resolved when it is
// executed.
struct AsyncAddress {
  ptx::Space space = ptx::Space::kNone;  // kNone: generic
  bool address32 = false;                // the address register is 32 bits wide
  std::int16_t array = -1;               // as MemoryOp has it
  Slot address = kNoSlot;                // kNoSlot: `offset` alone
  std::int64_t offset = 0;
};

// A variable in shared memory.
struct SharedArray {
  std::string name;
  std::uint32_t begin = 0, end = 0;  // dynamic: `end` is that of all shared memory
};

// Of st.bulk: bytes come in units, and there is a most.
inline constexpr std::uint64_t kFillUnit = 8, kMaxFill = 16777216;

enum class AsyncOpKind : std::uint8_t {
  kInit,          // mbarrier.init bar, count
  kInval,         //         .inval
  kExpectTx,      //         .expect_tx bar, tx
  kCompleteTx,    //         .complete_tx
  kArrive,        //         .arrive state, bar, count, tx
  kArriveDrop,    //         .arrive_drop
  kTestWait,      //         .test_wait p, bar, state or parity
  kTryWait,       //         .try_wait ..., limit
  kPendingCount,  //         .pending_count d, state
  kCopy,          // cp.async dst, src; `bytes` of which `count` are read, or none where `skip`
  kCopyCommit,    // cp.async.commit_group
  kCopyWait,      //         .wait_group pending, .wait_all
  kCopyArrive,    //         .mbarrier.arrive bar
  kBulkCopy,      // cp.async.bulk, cp.reduce.async.bulk dst, src, count (bytes), bar
  kBulkCommit,    // cp.async.bulk.commit_group
  kBulkWait,      //         .wait_group pending
  kStore,         // st.async, red.async dst, data, bar
  kFill,          // st.bulk dst, count (bytes): zeros, stored by the thread itself
  kTensorLoad,    // cp.async.bulk.tensor to shared memory: dst, src (map), coordinates, bar
  kTensorStore,   //         and from it: dst (map), coordinates, src
  kMapa,          // d = address `value` in the CTA of rank `count`
  kCtaRank,       // d = rank of the CTA that has address `value`
  kClusterArrive,
  kClusterWait,
};

// mbarriers, asynchronous copies and what belongs to clusters (decode_async.cpp, async.cpp).
struct AsyncOp {
  AsyncOpKind kind = AsyncOpKind::kInit;
  bool blocks = false;       // lanes that the guard keeps out must not wait with the others
  bool no_complete = false;  // arrive: the phase must not end by it
  bool parity = false;       // waits: for the phase of a parity, not of a state
  bool no_increment = false;
  bool read = false;  // kBulkWait: only until the sources have been read
  bool skip_negated = false;
  bool bulk_group = false;  // completion by bulk group, not by mbarrier
  bool wide = false;        // kMapa, kCtaRank: addresses of 8 bytes
  bool generic = false;     // kMapa, kCtaRank: generic addresses
  bool relaxed = false;     // arrivals and waits that neither release nor acquire
  Scope scope = Scope::kCta;
  std::uint8_t bytes = 0;  // kCopy: of a lane; kStore: of an element
  std::uint8_t elements = 1;
  std::uint8_t dimensions = 0;
  std::uint32_t pending = 0;
  AtomicOp reduce = AtomicOp::kNone;
  Number number = Number::kU32;
  AsyncAddress dst, src, bar;
  Slot count = kNoSlot, tx = kNoSlot, value = kNoSlot, limit = kNoSlot;
  Slot skip = kNoSlot;  // predicate
  Slot multicast = kNoSlot;
  Slot coordinates[5] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot};
  Slot data[4] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot};

  // An arrival that publishes what its thread has done to other CTAs.
  bool ReleasesToCluster() const {
    return (kind == AsyncOpKind::kClusterArrive || kind == AsyncOpKind::kArrive ||
            kind == AsyncOpKind::kArriveDrop) &&
           !relaxed && scope >= Scope::kCluster;
  }
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
  kClusterCtaRank,
  kClusterCtas,
  kClusterCtaX,
  kClusterCtaY,
  kClusterCtaZ,
  kClusterCtasX,
  kClusterCtasY,
  kClusterCtasZ,
  kClusterX,
  kClusterY,
  kClusterZ,
  kClustersX,
  kClustersY,
  kClustersZ,
  kIsExplicitCluster,
  kFrameAddress,  // Op::imm beyond the start of the function's local frame
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
  bool seldom = false;
};

// What spin.cpp must know of a compare in a spin loop to say when its outcome will change.
struct CompareCode {
  enum class Comparison : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
  Comparison comparison = Comparison::kEq;
  bool is_signed = false;
  bool exact = false;  // not an integer compare: operands must not change at all
  std::uint8_t bytes = 4;
};

// How a slot of the constant bank is filled when a launch is set up.
struct ConstantRef {
  enum class Source : std::uint8_t { kParam, kSymbol, kSpecial };
  Source source = Source::kParam;
  Special special = Special::kNtidX;  // one that is the same for all threads of a launch
  Slot slot = 0;                      // without kConstant
  std::uint8_t bytes = 4;             // slot width 4 or 8
  ptx::Type type = ptx::Type::kB32;   // of the parameter, for sign extension
  std::uint32_t offset = 0;           // parameter: byte offset
  std::string symbol;                 // symbol: name and addend
  std::int64_t addend = 0;
};

// A call that was inlined.
struct SourceCall {
  std::string file;
  int line = 0, column = 0;
  std::string callee;  // mangled; empty: not known
};

struct SourceLine {
  std::string file;
  int line = 0, column = 0;
  std::string inlined_at;  // "a.cu:12, b.cu:40": the calls it was inlined through, innermost first
  std::vector<SourceCall> calls;  // the same
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

class GrowingCode;

// One kernel, ready to run. Independent of process and device: shared by all of them. Immutable,
// but for code that grows.
struct Code {
  std::string name;
  std::vector<Op> ops;
  std::vector<MemoryOp> memory;
  std::vector<BranchOp> branches;
  std::vector<BranchTable> tables;
  std::vector<CallOp> calls;
  std::vector<FunctionCode> functions;    // [0] is the entry
  std::vector<std::int32_t> function_of;  // by number in the module (FunctionAddress): index, or -1
  std::vector<BarrierOp> barriers;
  std::vector<WarpOp> warp_ops;
  std::vector<MatrixOp> matrices;
  std::vector<AsyncOp> async;
  std::vector<SpinCode> spins;
  std::vector<CompareCode> compares;
  Bank constants;  // with literals in place
  std::vector<ConstantRef> refs;
  std::vector<std::string> forms;  // per op: "ld.acquire.sys.u32", for reports
  std::vector<SourceLine> lines;   // per op
  int slots = 0, predicates = 0;   // of the entry's frame
  bool reads_unset = false;        // a register may be read before anything was written to it
  std::uint32_t param_bytes = 0;
  std::vector<std::uint32_t> param_offsets, param_sizes;
  std::uint32_t static_shared = 0;  // dynamic shared memory follows, 16-byte aligned
  // What of it limits residency. Less where the machine code beside the PTX is of another
  // architecture and needs less: hardware would run that.
  std::uint32_t counted_shared = 0;
  std::vector<SharedArray> arrays;  // by `begin`; dynamic ones, which are one, last
  std::uint32_t local_bytes = 0;    // of the entry's frame, per thread
  std::uint32_t registers = 0;      // from the cubin; an estimate if there is none
  std::uint32_t max_threads = 1024;
  std::uint32_t cluster[3] = {0, 0, 0};  // as compiled (__cluster_dims__); 0: not
  std::vector<std::string> unsupported;  // forms that would fault
  GrowingCode* growing = nullptr;        // more functions may come (decode.h)
};

}  // namespace allranks::node
