// The decoder's state, shared by its parts: decode.cpp (the whole function), decode_operands.cpp,
// decode_memory.cpp, decode_atomic.cpp, decode_fence.cpp and decode_control.cpp (one method per
// instruction family).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "node/code/code.h"
#include "node/code/lanes.h"
#include "node/decode/flow.h"
#include "ptx/cubin.h"
#include "ptx/module.h"

namespace allranks::node {

// Bytes of the slots a register of this type takes: 4, 8 or 16.
inline int SlotBytes(ptx::Type type) {
  const int size = ptx::SizeOf(type);
  return size <= 4 ? 4 : size;
}

inline std::uint64_t AlignUp(std::uint64_t value, std::uint64_t align) {
  return align <= 1 ? value : (value + align - 1) / align * align;
}

inline std::uint64_t AlignOf(const ptx::Variable& variable) {
  if (variable.align != 0) return variable.align;
  return static_cast<std::uint64_t>(std::max(1, ptx::SizeOf(variable.type))) *
         std::max(1u, variable.vector);
}

// Moves a slot: kernel parameters and addresses of symbols come from the constant bank.
template <class T>
void CopySlot(const Lanes& lanes, const Op& op, std::uint32_t mask) {
  const std::byte* from = SlotAt(lanes.registers, lanes.constants, op.s[0]);
  auto* d = reinterpret_cast<T*>(lanes.registers + op.d * kSlotBytes);
  const auto* s = reinterpret_cast<const T*>(from);
  if (mask == kAllLanes) {
    for (int l = 0; l < kLanes; ++l) d[l] = s[l];
  } else {
    for (int l = 0; l < kLanes; ++l) d[l] = (mask >> l & 1) != 0 ? s[l] : d[l];
  }
}

// Whether Decoder::Async is responsible.
bool IsAsync(const ptx::Instruction& in);

// What the functions of one kernel share: the entry and everything it may call.
struct Closure {
  const ptx::Module& module;
  std::shared_ptr<Code> code = std::make_shared<Code>();
  std::vector<const ptx::Function*> functions;          // [0] is the entry
  std::map<const ptx::Function*, std::int32_t> number;  // index in `functions`
  std::map<std::pair<std::uint64_t, int>, Slot> literals;
  std::map<std::string_view, std::uint64_t> shared;  // variables: offsets; dynamic ones last
  std::map<std::string_view, std::int16_t> arrays;   // the same: their index in Code::arrays

  bool indirect = false;  // some function calls by pointer

  // `later`: the same module, if it has bodies that are read when they are needed.
  Closure(const ptx::Module& m, ptx::Module* later) : module(m), later_(later) {}
  // Finds all functions, then lays out shared memory.
  Result<void> Build(const ptx::Function& entry);
  const ptx::Module* later() const { return later_; }
  // Adds a function and all that it calls by name.
  Result<void> Add(const ptx::Function* function);

 private:
  Result<void> AddOne(const ptx::Function* function);
  Result<void> AddByPointer();
  void PlaceShared();

  ptx::Module* later_;
};

// Decodes one function of a closure, behind those before it.
class Decoder {
 public:
  using Instruction = ptx::Instruction;
  using Operand = ptx::Operand;
  using Space = ptx::Space;
  using Type = ptx::Type;

  Decoder(Closure& closure, const ptx::Function& function)
      : closure_(closure), module_(closure.module), function_(function), code_(closure.code) {}

  // Lays out local memory and registers.
  Result<void> Prepare();
  const Flow& flow() const { return flow_; }
  // Gives the function's frame the shape that all frames of the code have (Decode in decode.cpp).
  void Shape(int wide_slots, int slots);
  Result<void> Run();

 private:
  // Where an operand of the given width stands; kNoSlot if it cannot be one.
  Slot Place(const Operand& operand, int bytes, bool is_float, int literal_bits = 0);
  // Where a result goes: a register of that width, or nowhere (`_`, or never read). False for
  // anything else, which only hostile text has there.
  bool Destination(const Operand& operand, int bytes, Slot* slot) const {
    *slot = kNoSlot;
    if (operand.kind == Operand::Kind::kSink) return true;
    if (!HasWidth(operand, bytes)) return false;
    *slot = flow_.place[static_cast<std::size_t>(operand.reg)];
    return true;
  }
  Slot Predicate(const Operand& operand) const;
  Slot Literal(std::uint64_t value, int bytes);
  Slot Reference(ConstantRef ref);
  Slot NewConstant(int bytes);
  Slot SymbolSlot(std::string_view name, std::int64_t addend, int bytes);
  bool Address(const Operand& operand, MemoryOp* op);
  Type RegisterType(const Operand& operand) const {
    return operand.kind == Operand::Kind::kReg
               ? function_.registers[static_cast<std::size_t>(operand.reg)].type
               : Type::kNone;
  }

  bool HasWidth(const Operand& operand, int bytes) const {
    const Type type = RegisterType(operand);
    return type != Type::kNone && type != Type::kPred && SlotBytes(type) == bytes;
  }

  // Finds registers that hold the same value in all threads of a launch: those written once, by an
  // unguarded move of a literal, parameter, address or launch-wide special register. Their uses
  // read the constant bank; the moves are only counted.
  void FindLaunchConstants();
  // Finds the arrays of shared memory that registers point into (decode_arrays.cpp).
  void FindArrays();
  std::int32_t ArrayOf(const Operand& operand) const;
  std::int32_t ArrayOfResult(const Instruction& in) const;
  Slot LaunchConstant(const Instruction& in, int bytes);
  Slot RegisterPlace(std::int32_t reg) const {
    const Slot constant = constant_slot_[static_cast<std::size_t>(reg)];
    return constant != kNoSlot ? constant : flow_.place[static_cast<std::size_t>(reg)];
  }

  Op Start(const Instruction& in, OpKind kind) const;
  void Emit(Op op);
  void FlushSkipped();
  void MarkRuns();
  void One(const Instruction& in);
  bool Known(const Instruction& in);  // false: it is not decoded
  bool LoadParam(const Instruction& in);
  bool LoadStore(const Instruction& in, bool load);
  bool Atomic(const Instruction& in, bool reduce);
  bool Multimem(const Instruction& in);
  bool DataElements(const Operand& data, bool load, MemoryOp* op);
  bool AtomicOperands(const Operand& operand, MemoryOp* op);
  bool OnlyPolicyBehind(const Instruction& in, std::size_t count, bool hint);
  void EmitMemory(const Instruction& in, const MemoryOp& op);
  bool CacheHint(const Instruction& in);
  bool TensormapReplace(const Instruction& in);
  bool CreatePolicy(const Instruction& in);
  bool Fence(const Instruction& in);
  bool Branch(const Instruction& in);
  bool BranchIndexed(const Instruction& in);
  bool Call(const Instruction& in);
  bool FramePlaces(const Operand& list, std::vector<FramePlace>* places) const;
  bool Barrier(const Instruction& in);
  bool Warp(const Instruction& in);
  bool Matrix(const Instruction& in);
  bool MatrixRows(const Instruction& in);
  bool MatrixProduct(const Instruction& in);
  bool MatrixFragment(const Instruction& in);
  bool MatrixGroup(const Instruction& in);
  bool Fragment(const Operand& operand, std::size_t count, int width, bool destination,
                std::vector<Slot>* slots);
  void EmitMatrix(const Instruction& in, MatrixOp op, std::uint8_t steps);
  // decode_async.cpp: true if the instruction is of that family and well formed.
  bool Async(const Instruction& in);
  bool Mbarrier(const Instruction& in, AsyncOp* op, Op* out);
  bool CopyAsync(const Instruction& in, AsyncOp* op);
  bool CopyBulk(const Instruction& in, AsyncOp* op);
  bool CopyTensor(const Instruction& in, AsyncOp* op);
  bool StoreAsync(const Instruction& in, AsyncOp* op);
  bool StoreBulk(const Instruction& in, AsyncOp* op);
  bool Cluster(const Instruction& in, AsyncOp* op, Op* out);
  bool AsyncOperand(const Operand& operand, Space space, AsyncAddress* address);
  bool Mov(const Instruction& in);
  bool Alu(const Instruction& in);
  void Track(std::uint32_t at);
  bool HasNoEffect(const Instruction& in) const;
  void LayOutVariables();
  void Spins();
  void Lines();
  bool IsEntry() const { return function_.is_entry; }

  Closure& closure_;
  const ptx::Module& module_;
  const ptx::Function& function_;
  std::shared_ptr<Code> code_;
  Flow flow_;
  std::vector<Slot> constant_slot_;                   // by register: its constant, or kNoSlot
  std::vector<std::int32_t> array_of_;                // by register: an array, or none (negative)
  std::vector<bool> constant_move_;                   // by instruction: need not be executed
  std::uint8_t skipped_ = 0;                          // such moves since the last operation
  std::uint32_t at_ = 0;                              // instruction being decoded
  std::vector<std::uint32_t> op_of_;                  // first op of each instruction
  std::size_t index_ = 0;                             // in Code::functions
  std::uint32_t begin_ = 0;                           // of the function's ops
  std::map<std::string_view, FramePlace> frame_;      // local memory, and parameters of functions
  std::map<std::string_view, std::uint64_t> params_;  // of the entry
  int predicates_ = 0;
  Slot carry_ = kNoSlot;  // predicate of add.cc and its kin
};

}  // namespace allranks::node
