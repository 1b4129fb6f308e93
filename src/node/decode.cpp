// The decoder; see decode.h. One method per instruction family; everything else goes to SelectAlu.
#include "node/decode.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "node/alu.h"
#include "node/flow.h"
#include "node/lanes.h"

namespace allranks::node {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

constexpr std::size_t kMaxAccessBytes = 32;           // of one lane: v8.b32, v4.b64
constexpr std::uint32_t kMaxRegisters = 255;          // per thread, on every architecture
constexpr std::uint32_t kMaxLocalBytes = 512 * 1024;  // per thread, as on hardware

int SlotBytes(Type type) {
  const int size = ptx::SizeOf(type);
  return size <= 4 ? 4 : size;
}

std::uint64_t AlignUp(std::uint64_t value, std::uint64_t align) {
  return align <= 1 ? value : (value + align - 1) / align * align;
}

std::uint64_t AlignOf(const ptx::Variable& variable) {
  if (variable.align != 0) return variable.align;
  return std::max(1, ptx::SizeOf(variable.type)) * std::max(1u, variable.vector);
}

template <class T>
void Copy(const Lanes& lanes, const Op& op, std::uint32_t mask) {
  const std::byte* from = SlotAt(lanes.registers, lanes.constants, op.s[0]);
  auto* d = reinterpret_cast<T*>(lanes.registers + op.d * kSlotBytes);
  const auto* s = reinterpret_cast<const T*>(from);
  if (mask == kAllLanes) {
    for (int l = 0; l < kLanes; ++l) d[l] = s[l];
  } else {
    for (int l = 0; l < kLanes; ++l) d[l] = (mask >> l & 1) != 0 ? s[l] : d[l];
  }
}

std::optional<Special> SpecialFromName(std::string_view name) {
  static const std::unordered_map<std::string_view, Special> kNames = {
      {"%tid.x", Special::kTidX},
      {"%tid.y", Special::kTidY},
      {"%tid.z", Special::kTidZ},
      {"%ntid.x", Special::kNtidX},
      {"%ntid.y", Special::kNtidY},
      {"%ntid.z", Special::kNtidZ},
      {"%ctaid.x", Special::kCtaidX},
      {"%ctaid.y", Special::kCtaidY},
      {"%ctaid.z", Special::kCtaidZ},
      {"%nctaid.x", Special::kNctaidX},
      {"%nctaid.y", Special::kNctaidY},
      {"%nctaid.z", Special::kNctaidZ},
      {"%laneid", Special::kLaneid},
      {"%warpid", Special::kWarpid},
      {"%nwarpid", Special::kNwarpid},
      {"%smid", Special::kSmid},
      {"%nsmid", Special::kNsmid},
      {"%gridid", Special::kGridid},
      {"%lanemask_eq", Special::kLanemaskEq},
      {"%lanemask_lt", Special::kLanemaskLt},
      {"%lanemask_le", Special::kLanemaskLe},
      {"%lanemask_gt", Special::kLanemaskGt},
      {"%lanemask_ge", Special::kLanemaskGe},
      {"%clock", Special::kClock},
      {"%clock_hi", Special::kClockHi},
      {"%clock64", Special::kClock64},
      {"%globaltimer", Special::kGlobaltimer},
      {"%globaltimer_lo", Special::kGlobaltimerLo},
      {"%globaltimer_hi", Special::kGlobaltimerHi},
      {"%envreg1", Special::kEnvreg1},
      {"%envreg2", Special::kEnvreg2},
      {"%dynamic_smem_size", Special::kDynamicSmem},
      {"%total_smem_size", Special::kTotalSmem},
      // Without clusters every CTA is its own cluster of one.
      {"%cluster_ctarank", Special::kZero},
      {"%cluster_nctarank", Special::kOne},
      {"%cluster_ctaid.x", Special::kZero},
      {"%cluster_ctaid.y", Special::kZero},
      {"%cluster_ctaid.z", Special::kZero},
      {"%cluster_nctaid.x", Special::kOne},
      {"%cluster_nctaid.y", Special::kOne},
      {"%cluster_nctaid.z", Special::kOne},
      {"%clusterid.x", Special::kCtaidX},
      {"%clusterid.y", Special::kCtaidY},
      {"%clusterid.z", Special::kCtaidZ},
      {"%nclusterid.x", Special::kNctaidX},
      {"%nclusterid.y", Special::kNctaidY},
      {"%nclusterid.z", Special::kNctaidZ},
      {"%is_explicit_cluster", Special::kZero}};
  const auto it = kNames.find(name);
  return it == kNames.end() ? std::nullopt : std::optional(it->second);
}

Space SpaceOf(const Instruction& in) {
  for (std::string_view word : in.modifiers) {
    if (word == "global") return Space::kGlobal;
    if (word == "const") return Space::kConst;
    if (word == "shared" || word == "shared::cta" || word == "shared::cluster")
      return Space::kShared;
    if (word == "local") return Space::kLocal;
    if (word == "param" || word == "param::entry" || word == "param::func") return Space::kParam;
  }
  return Space::kNone;
}

Scope ScopeOf(const Instruction& in, Scope otherwise) {
  if (in.Has("sys")) return Scope::kSys;
  if (in.Has("gpu") || in.Has("gl")) return Scope::kGpu;
  if (in.Has("cluster")) return Scope::kCluster;
  if (in.Has("cta")) return Scope::kCta;
  return otherwise;
}

Order OrderOf(const Instruction& in, Order otherwise) {
  for (std::string_view word : in.modifiers) {
    if (word == "volatile" || word == "mmio") return Order::kVolatile;
    if (word == "relaxed") return Order::kRelaxed;
    if (word == "acquire") return Order::kAcquire;
    if (word == "release") return Order::kRelease;
    if (word == "acq_rel") return Order::kAcqRel;
    if (word == "sc") return Order::kSc;
    if (word == "weak") return Order::kWeak;
  }
  return otherwise;
}

class Decoder {
 public:
  Decoder(const ptx::Module& module, const ptx::Function& function)
      : module_(module), function_(function), code_(std::make_shared<Code>()) {}

  Result<std::shared_ptr<const Code>> Run(const ptx::KernelResources* resources);

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

  Op Start(const Instruction& in, OpKind kind) const;
  void Emit(Op op) { code_->ops.push_back(op); }
  void One(const Instruction& in);
  bool LoadParam(const Instruction& in);
  bool LoadStore(const Instruction& in, bool load);
  bool Atomic(const Instruction& in, bool reduce);
  bool Fence(const Instruction& in);
  bool Branch(const Instruction& in);
  bool Barrier(const Instruction& in);
  bool Warp(const Instruction& in);
  bool Mov(const Instruction& in);
  bool Alu(const Instruction& in);
  void Track(std::uint32_t at);
  std::set<std::string_view> UsedSymbols() const;
  void LayOutVariables();
  void Lines();

  const ptx::Module& module_;
  const ptx::Function& function_;
  std::shared_ptr<Code> code_;
  Flow flow_;
  std::uint32_t at_ = 0;              // instruction being decoded
  std::vector<std::uint32_t> op_of_;  // first op of each instruction
  std::map<std::pair<std::uint64_t, int>, Slot> literals_;
  std::map<std::string_view, std::uint64_t> shared_, local_, params_;
  Slot carry_ = kNoSlot;  // predicate of add.cc and its kin
};

Slot Decoder::NewConstant(int bytes) {
  const std::size_t slot = code_->constants.slots();
  const std::size_t at = bytes > 4 ? (slot + 1) / 2 * 2 : slot;
  if (at > static_cast<std::size_t>(kMaxSlots)) return kNoSlot;
  code_->constants.Resize(at + static_cast<std::size_t>(std::max(1, bytes / 4)));
  return static_cast<Slot>(at | kConstant);
}

Slot Decoder::Literal(std::uint64_t value, int bytes) {
  if (bytes == 4) value &= 0xffffffffu;
  const auto [it, fresh] = literals_.try_emplace({value, bytes}, kNoSlot);
  if (!fresh) return it->second;
  const Slot slot = NewConstant(bytes);
  it->second = slot;
  if (slot == kNoSlot) return slot;
  std::byte* at = code_->constants.at(slot & ~kConstant);
  for (std::size_t l = 0; l < kLanes; ++l) {
    if (bytes == 4) {
      const auto v = static_cast<std::uint32_t>(value);
      std::memcpy(at + l * 4, &v, 4);
    } else {
      std::memcpy(at + l * 8, &value, 8);
    }
  }
  return slot;
}

Slot Decoder::Reference(ConstantRef ref) {
  const Slot slot = NewConstant(ref.bytes);
  if (slot == kNoSlot) return slot;
  ref.slot = static_cast<Slot>(slot & ~kConstant);
  code_->refs.push_back(std::move(ref));
  return slot;
}

Slot Decoder::SymbolSlot(std::string_view name, std::int64_t addend, int bytes) {
  for (const auto* table : {&shared_, &local_, &params_}) {
    if (const auto it = table->find(name); it != table->end()) {
      return Literal(it->second + static_cast<std::uint64_t>(addend), bytes);
    }
  }
  const ptx::Variable* variable = module_.FindVariable(name);
  if (variable == nullptr ||
      (variable->space != Space::kGlobal && variable->space != Space::kConst)) {
    return kNoSlot;
  }
  ConstantRef ref;
  ref.what = ConstantRef::What::kSymbol;
  ref.bytes = static_cast<std::uint8_t>(bytes);
  ref.symbol = std::string(name);
  ref.addend = addend;
  return Reference(std::move(ref));
}

Slot Decoder::Place(const Operand& operand, int bytes, bool is_float, int literal_bits) {
  switch (operand.kind) {
    case Operand::Kind::kReg:
      // The text may be hostile: a register of another width would be read or written past its end.
      if (!HasWidth(operand, bytes)) return kNoSlot;
      return flow_.place[static_cast<std::size_t>(operand.reg)];
    case Operand::Kind::kInt: {
      std::uint64_t value = operand.imm;
      if (literal_bits == 16) value &= 0xffff;
      if (is_float && literal_bits == 0) {
        // An integer literal where a float is expected is that number.
        if (bytes == 4) {
          const auto f = static_cast<float>(static_cast<std::int64_t>(value));
          std::uint32_t bits = 0;
          std::memcpy(&bits, &f, 4);
          value = bits;
        } else {
          const auto f = static_cast<double>(static_cast<std::int64_t>(value));
          std::memcpy(&value, &f, 8);
        }
      }
      return Literal(value, bytes);
    }
    case Operand::Kind::kF32:
      return Literal(operand.imm, bytes);
    case Operand::Kind::kF64: {
      if (bytes == 8) return Literal(operand.imm, 8);
      double value = 0;
      std::memcpy(&value, &operand.imm, 8);
      const auto narrow = static_cast<float>(value);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &narrow, 4);
      return Literal(bits, 4);
    }
    case Operand::Kind::kSymbol:
      return SymbolSlot(operand.name, static_cast<std::int64_t>(operand.imm), bytes);
    default:
      return kNoSlot;
  }
}

Slot Decoder::Predicate(const Operand& operand) const {
  if (operand.kind != Operand::Kind::kReg || RegisterType(operand) != Type::kPred) return kNoSlot;
  return flow_.place[static_cast<std::size_t>(operand.reg)];
}

Op Decoder::Start(const Instruction& in, OpKind kind) const {
  Op op;
  op.kind = kind;
  op.source = at_;
  if (in.guard >= 0) {
    op.guard = flow_.place[static_cast<std::size_t>(in.guard)];
    op.guard_negated = in.guard_negated;
  }
  return op;
}

bool Decoder::Address(const Operand& operand, MemoryOp* op) {
  if (operand.kind != Operand::Kind::kAddress || operand.elements.empty()) return false;
  const Operand& base = operand.elements[0];
  op->offset = static_cast<std::int64_t>(operand.imm);
  if (base.kind == Operand::Kind::kReg) {
    if (!HasWidth(base, 4) && !HasWidth(base, 8)) return false;
    op->address = flow_.place[static_cast<std::size_t>(base.reg)];
    op->address32 = SlotBytes(RegisterType(base)) == 4;
    return true;
  }
  if (base.kind == Operand::Kind::kInt) {
    op->offset += static_cast<std::int64_t>(base.imm);
    return true;
  }
  if (base.kind != Operand::Kind::kSymbol) return false;
  op->offset += static_cast<std::int64_t>(base.imm);
  op->address = SymbolSlot(base.name, 0, 8);
  return op->address != kNoSlot;
}

bool Decoder::LoadParam(const Instruction& in) {
  const Operand& address = in.operands[1];
  if (address.kind != Operand::Kind::kAddress || address.elements.empty() ||
      address.elements[0].kind != Operand::Kind::kSymbol) {
    return false;
  }
  const auto param = params_.find(address.elements[0].name);
  if (param == params_.end()) return false;
  const Type type = in.TypeFromEnd();
  const int size = ptx::SizeOf(type);
  if (size == 0 || size > 8) return false;
  std::vector<Operand> targets;
  if (in.operands[0].kind == Operand::Kind::kVector) {
    targets = in.operands[0].elements;
  } else {
    targets.push_back(in.operands[0]);
  }
  std::uint64_t offset = param->second + address.imm + address.elements[0].imm;
  for (const Operand& target : targets) {
    if (target.kind == Operand::Kind::kReg) {
      if (!HasWidth(target, 4) && !HasWidth(target, 8)) return false;
      if (offset + static_cast<std::uint64_t>(size) > code_->param_bytes) return false;
      ConstantRef ref;
      ref.what = ConstantRef::What::kParam;
      ref.bytes = static_cast<std::uint8_t>(SlotBytes(RegisterType(target)));
      ref.type = type;
      ref.offset = static_cast<std::uint32_t>(offset);
      Op op = Start(in, OpKind::kAlu);
      op.s[0] = Reference(ref);
      op.d = flow_.place[static_cast<std::size_t>(target.reg)];
      op.alu = ref.bytes == 4 ? Copy<std::uint32_t> : Copy<std::uint64_t>;
      if (op.s[0] == kNoSlot || ref.bytes > 8) return false;
      if (op.d != kNoSlot) Emit(op);
    }
    offset += static_cast<std::uint64_t>(size);
  }
  return true;
}

bool Decoder::LoadStore(const Instruction& in, bool load) {
  if (in.operands.size() < 2) return false;
  MemoryOp op;
  op.space = SpaceOf(in);
  if (load && op.space == Space::kParam && LoadParam(in)) return true;
  if (!load && (op.space == Space::kParam || op.space == Space::kConst)) return false;
  op.what = load ? MemoryOp::What::kLoad : MemoryOp::What::kStore;
  op.type = in.TypeFromEnd();
  op.bytes = static_cast<std::uint8_t>(ptx::SizeOf(op.type));
  if (op.bytes == 0) return false;
  op.order = OrderOf(in, Order::kWeak);
  op.scope = ScopeOf(in, Scope::kSys);
  for (std::string_view word : in.modifiers) {
    // Forms whose meaning is more than a load or store.
    if (word == "async" || word == "bulk" || word == "mmio") return false;
  }
  const Operand& address = in.operands[load ? 1 : 0];
  const Operand& data = in.operands[load ? 0 : 1];
  if (!Address(address, &op)) return false;
  std::vector<Operand> elements;
  if (data.kind == Operand::Kind::kVector) {
    elements = data.elements;
  } else {
    elements.push_back(data);
  }
  if (elements.empty() || elements.size() > 8 || elements.size() * op.bytes > kMaxAccessBytes)
    return false;
  op.count = static_cast<std::uint8_t>(elements.size());
  int width = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].kind == Operand::Kind::kReg) {
      width = std::max(width, SlotBytes(RegisterType(elements[i])));
    }
  }
  if (width == 0) width = std::max<int>(4, op.bytes);
  if (width < op.bytes || (width == 16 && op.bytes != 16)) return false;
  for (const Operand& element : elements) {
    if (element.kind == Operand::Kind::kReg && !HasWidth(element, width)) return false;
  }
  op.register_bytes = static_cast<std::uint8_t>(width);
  if (load && elements[0].kind == Operand::Kind::kReg &&
      ptx::SizeOf(RegisterType(elements[0])) == 2) {
    op.register_bytes = 2;  // a slot, but extended only to 16 bits
  }
  const bool is_float = op.type == Type::kF32 || op.type == Type::kF64;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (load) {
      if (!Destination(elements[i], width, &op.data[i])) return false;
      continue;
    }
    op.data[i] = Place(elements[i], width, is_float, op.bytes == 2 ? 16 : 0);
    if (op.data[i] == kNoSlot) return false;
  }
  Op out = Start(in, OpKind::kMemory);
  out.aux = static_cast<std::uint32_t>(code_->memory.size());
  out.d = load ? op.data[0] : kNoSlot;
  code_->memory.push_back(op);
  Emit(out);
  return true;
}

bool Decoder::Atomic(const Instruction& in, bool reduce) {
  static const std::unordered_map<std::string_view, AtomicOp> kOps = {
      {"exch", AtomicOp::kExch}, {"cas", AtomicOp::kCas}, {"add", AtomicOp::kAdd},
      {"min", AtomicOp::kMin},   {"max", AtomicOp::kMax}, {"inc", AtomicOp::kInc},
      {"dec", AtomicOp::kDec},   {"and", AtomicOp::kAnd}, {"or", AtomicOp::kOr},
      {"xor", AtomicOp::kXor}};
  MemoryOp op;
  op.what = reduce ? MemoryOp::What::kReduce : MemoryOp::What::kAtomic;
  op.space = SpaceOf(in);
  op.type = in.TypeFromEnd();
  op.bytes = static_cast<std::uint8_t>(ptx::SizeOf(op.type));
  op.order = OrderOf(in, Order::kRelaxed);
  op.scope = ScopeOf(in, Scope::kGpu);
  for (std::string_view word : in.modifiers) {
    if (const auto it = kOps.find(word); it != kOps.end()) op.atomic = it->second;
    if (word == "v2" || word == "v4" || word == "v8" || word == "async") return false;
  }
  const bool float_add =
      op.atomic == AtomicOp::kAdd && (op.type == Type::kF32 || op.type == Type::kF64);
  const bool integer = op.type == Type::kB32 || op.type == Type::kB64 || op.type == Type::kU32 ||
                       op.type == Type::kS32 || op.type == Type::kU64 || op.type == Type::kS64;
  if (op.atomic == AtomicOp::kNone || !(integer || float_add)) return false;
  const std::size_t first = reduce ? 0 : 1;
  const std::size_t sources = op.atomic == AtomicOp::kCas ? 2 : 1;
  if (in.operands.size() < first + 1 + sources || !Address(in.operands[first], &op)) return false;
  op.register_bytes = static_cast<std::uint8_t>(std::max<int>(4, op.bytes));
  const bool is_float = float_add;
  if (!reduce && !Destination(in.operands[0], op.register_bytes, &op.data[0])) return false;
  if (op.atomic == AtomicOp::kCas) {
    op.compare = Place(in.operands[first + 1], op.register_bytes, is_float);
    op.operand = Place(in.operands[first + 2], op.register_bytes, is_float);
    if (op.compare == kNoSlot) return false;
  } else {
    op.operand = Place(in.operands[first + 1], op.register_bytes, is_float);
  }
  if (op.operand == kNoSlot) return false;
  Op out = Start(in, OpKind::kMemory);
  out.aux = static_cast<std::uint32_t>(code_->memory.size());
  out.d = op.data[0];
  code_->memory.push_back(op);
  Emit(out);
  return true;
}

bool Decoder::Fence(const Instruction& in) {
  MemoryOp op;
  op.what = MemoryOp::What::kFence;
  op.order = OrderOf(in, Order::kAcqRel);
  op.scope = ScopeOf(in, Scope::kCta);
  Op out = Start(in, OpKind::kFence);
  out.aux = static_cast<std::uint32_t>(code_->memory.size());
  code_->memory.push_back(op);
  Emit(out);
  return true;
}

bool Decoder::Branch(const Instruction& in) {
  if (in.operands.size() != 1 || in.operands[0].kind != Operand::Kind::kSymbol) return false;
  const auto label = function_.labels.find(in.operands[0].name);
  if (label == function_.labels.end()) return false;
  BranchOp branch;
  branch.target = label->second;  // instruction index; made an op index in Run
  branch.reconverge = flow_.reconverge[at_];
  branch.back_edge = label->second <= at_;
  Op op = Start(in, OpKind::kBranch);
  op.aux = static_cast<std::uint32_t>(code_->branches.size());
  code_->branches.push_back(branch);
  Emit(op);
  return true;
}

bool Decoder::Barrier(const Instruction& in) {
  if (in.Has("cluster")) return false;
  BarrierOp op;
  std::size_t next = 0;
  if (in.Has("sync")) {
    op.what = BarrierOp::What::kSync;
  } else if (in.Has("arrive")) {
    op.what = BarrierOp::What::kArrive;
  } else if (in.Has("red")) {
    op.what = in.Has("popc")  ? BarrierOp::What::kRedPopc
              : in.Has("and") ? BarrierOp::What::kRedAnd
                              : BarrierOp::What::kRedOr;
    next = 1;
  } else {
    return false;
  }
  Op out = Start(in, OpKind::kBarrier);
  if (next == 1) {
    if (in.operands.size() < 3) return false;
    if (op.what == BarrierOp::What::kRedPopc) {
      if (!Destination(in.operands[0], 4, &out.d)) return false;
    } else {
      out.d = Predicate(in.operands[0]);
    }
    op.source = Predicate(in.operands.back());
    op.source_negated = in.operands.back().negated;
    if (out.d == kNoSlot || op.source == kNoSlot) return false;
  }
  const std::size_t last = in.operands.size() - next;  // behind it only a reduction's predicate
  if (next >= in.operands.size()) return false;
  op.id = Place(in.operands[next], 4, false);
  if (next + 1 < last) op.threads = Place(in.operands[next + 1], 4, false);
  if (op.id == kNoSlot) return false;
  out.aux = static_cast<std::uint32_t>(code_->barriers.size());
  code_->barriers.push_back(op);
  Emit(out);
  return true;
}

bool Decoder::Warp(const Instruction& in) {
  using What = WarpOp::What;
  WarpOp op;
  Op out = Start(in, OpKind::kWarpSync);
  const auto& o = in.operands;
  const auto first = [&](const Operand& operand) -> const Operand& {
    return operand.kind == Operand::Kind::kPair ? operand.elements[0] : operand;
  };
  if (in.opcode == "bar" || in.opcode == "barrier") {  // bar.warp.sync mask
    if (o.size() != 1) return false;
    op.what = What::kSync;
    op.mask = Place(o[0], 4, false);
  } else if (in.opcode == "activemask") {
    op.what = What::kActiveMask;
    if (o.size() != 1 || !Destination(o[0], 4, &out.d)) return false;
  } else if (in.opcode == "elect") {
    op.what = What::kElect;
    if (o.size() != 2 || o[0].kind != Operand::Kind::kPair) return false;
    if (!Destination(o[0].elements[0], 4, &out.d)) return false;
    op.predicate = Predicate(o[0].elements[1]);
    op.mask = Place(o[1], 4, false);
  } else if (in.opcode == "shfl") {
    if (!in.Has("sync") || o.size() != 5) return false;
    op.what = in.Has("up")     ? What::kShflUp
              : in.Has("down") ? What::kShflDown
              : in.Has("bfly") ? What::kShflBfly
                               : What::kShflIdx;
    if (!Destination(first(o[0]), 4, &out.d)) return false;
    if (o[0].kind == Operand::Kind::kPair) op.predicate = Predicate(o[0].elements[1]);
    op.source = Place(o[1], 4, false);
    op.b = Place(o[2], 4, false);
    op.c = Place(o[3], 4, false);
    op.mask = Place(o[4], 4, false);
    if (op.source == kNoSlot || op.b == kNoSlot || op.c == kNoSlot) return false;
  } else if (in.opcode == "vote") {
    if (!in.Has("sync") || o.size() != 3) return false;
    op.what = in.Has("ballot") ? What::kBallot
              : in.Has("all")  ? What::kVoteAll
              : in.Has("any")  ? What::kVoteAny
                               : What::kVoteUni;
    if (op.what != What::kBallot) {
      out.d = Predicate(o[0]);
    } else if (!Destination(o[0], 4, &out.d)) {
      return false;
    }
    op.source = Predicate(o[1]);
    op.source_negated = o[1].negated;
    op.mask = Place(o[2], 4, false);
    if (op.source == kNoSlot) return false;
  } else if (in.opcode == "match") {
    if (!in.Has("sync") || o.size() != 3) return false;
    op.what = in.Has("all") ? What::kMatchAll : What::kMatchAny;
    op.bytes = in.Has("b64") ? 8 : 4;
    if (!Destination(first(o[0]), 4, &out.d)) return false;
    if (o[0].kind == Operand::Kind::kPair) op.predicate = Predicate(o[0].elements[1]);
    op.source = Place(o[1], op.bytes, false);
    op.mask = Place(o[2], 4, false);
    if (op.source == kNoSlot) return false;
  } else if (in.opcode == "redux") {
    if (!in.Has("sync") || o.size() != 3 || in.Has("f32")) return false;
    op.what = in.Has("add")   ? What::kReduxAdd
              : in.Has("min") ? What::kReduxMin
              : in.Has("max") ? What::kReduxMax
              : in.Has("and") ? What::kReduxAnd
              : in.Has("or")  ? What::kReduxOr
                              : What::kReduxXor;
    op.is_signed = in.Has("s32");
    if (!Destination(o[0], 4, &out.d)) return false;
    op.source = Place(o[1], 4, false);
    op.mask = Place(o[2], 4, false);
    if (op.source == kNoSlot) return false;
  } else {
    return false;
  }
  if (op.what != What::kActiveMask && op.mask == kNoSlot) return false;
  out.aux = static_cast<std::uint32_t>(code_->warp_ops.size());
  code_->warp_ops.push_back(op);
  Emit(out);
  return true;
}

// mov from special registers and symbols; other moves are arithmetic.
bool Decoder::Mov(const Instruction& in) {
  if (in.operands.size() != 2) return false;
  const Operand& target = in.operands[0];
  if (!HasWidth(target, 4) && !HasWidth(target, 8)) return false;
  const int bytes = SlotBytes(RegisterType(target));
  if (in.operands[1].kind == Operand::Kind::kSpecial) {
    const auto special = SpecialFromName(in.operands[1].name);
    if (!special) return false;
    Op op = Start(in, OpKind::kSpecial);
    op.aux = static_cast<std::uint32_t>(*special);
    op.imm = static_cast<std::uint32_t>(bytes);
    op.d = flow_.place[static_cast<std::size_t>(target.reg)];
    if (op.d == kNoSlot) op.kind = OpKind::kNop;
    Emit(op);
    return true;
  }
  if (in.operands[1].kind != Operand::Kind::kSymbol) return false;
  Op op = Start(in, OpKind::kAlu);
  op.d = flow_.place[static_cast<std::size_t>(target.reg)];
  op.s[0] = Place(in.operands[1], bytes, false);
  op.alu = bytes == 4 ? Copy<std::uint32_t> : Copy<std::uint64_t>;
  if (op.s[0] == kNoSlot) return false;
  if (op.d == kNoSlot) op.kind = OpKind::kNop;
  Emit(op);
  return true;
}

bool Decoder::Alu(const Instruction& in) {
  AluForm form;
  if (!SelectAlu(in, &form, &function_.registers)) return false;
  Op op = Start(in, OpKind::kAlu);
  op.alu = form.fn;
  op.imm = form.imm;
  op.cycles = form.cycles;
  op.flags = form.flags;
  for (const AluForm::Place& place : form.places) {
    if (place.operand >= in.operands.size()) return false;
    const Operand* operand = &in.operands[place.operand];
    if (place.element != 0xff) {
      if (place.element >= operand->elements.size()) return false;
      operand = &operand->elements[place.element];
    }
    Slot slot = kNoSlot;
    if (operand->kind == Operand::Kind::kSink) {
      slot = kNoSlot;
    } else if (place.predicate) {
      slot = Predicate(*operand);
      if (slot == kNoSlot) return false;
    } else {
      slot = Place(*operand, place.bytes, place.is_float, place.literal_bits);
    }
    using Where = AluForm::Place::Where;
    switch (place.where) {
      case Where::kD:
        op.d = slot;
        break;
      case Where::kD2:
        op.d2 = slot;
        break;
      case Where::kS0:
        op.s[0] = slot;
        break;
      case Where::kS1:
        op.s[1] = slot;
        break;
      case Where::kS2:
        op.s[2] = slot;
        break;
      case Where::kS3:
        op.s[3] = slot;
        break;
    }
    const bool is_source = place.where != Where::kD && place.where != Where::kD2 &&
                           ((form.flags & kExtraDestinations) == 0 || place.where == Where::kS0 ||
                            place.where == Where::kS1);
    if (is_source && slot == kNoSlot) return false;
  }
  if ((form.flags & (kReadsCarry | kWritesCarry)) != 0) {
    if (carry_ == kNoSlot) carry_ = static_cast<Slot>(code_->predicates++);
    if ((form.flags & kReadsCarry) != 0) op.s[3] = carry_;
    if ((form.flags & kWritesCarry) != 0) op.d2 = carry_;
  }
  const bool more =
      (form.flags & kExtraDestinations) != 0 && (op.s[2] != kNoSlot || op.s[3] != kNoSlot);
  if (op.d == kNoSlot && op.d2 == kNoSlot && !more) op.kind = OpKind::kNop;  // result never used
  Emit(op);
  return true;
}

void Decoder::One(const Instruction& in) {
  const std::string_view name = in.opcode;
  bool known = false;
  if (name == "ld" || name == "ldu") {
    known = LoadStore(in, true);
  } else if (name == "st") {
    known = LoadStore(in, false);
  } else if (name == "atom" || name == "red") {
    known = Atomic(in, name == "red");
  } else if (name == "fence" || name == "membar") {
    known = Fence(in);
  } else if (name == "bra") {
    known = Branch(in);
  } else if ((name == "bar" || name == "barrier") && !in.Has("warp")) {
    known = Barrier(in);
  } else if (name == "bar" || name == "barrier" || name == "shfl" || name == "vote" ||
             name == "match" || name == "redux" || name == "activemask" || name == "elect") {
    known = Warp(in);
  } else if (name == "exit" || name == "ret") {
    Emit(Start(in, OpKind::kExit));
    known = true;
  } else if (name == "trap" || name == "brkpt") {
    Emit(Start(in, OpKind::kTrap));
    known = true;
  } else if (name == "nanosleep") {
    Op op = Start(in, OpKind::kSleep);
    op.s[0] = in.operands.empty() ? kNoSlot : Place(in.operands[0], 4, false);
    known = op.s[0] != kNoSlot;
    if (known) Emit(op);
  } else if (name == "prefetch" || name == "prefetchu" || name == "discard" ||
             name == "applypriority" || name == "pmevent" || name == "griddepcontrol" ||
             name == "setmaxnreg") {
    Emit(Start(in, OpKind::kNop));  // hints: no effect on results
    known = true;
  } else {
    known = (name == "mov" && Mov(in)) || Alu(in);
  }
  if (!known) {
    Emit(Start(in, OpKind::kUnsupported));
    code_->unsupported.push_back(in.Form());
  }
}

void Decoder::Track(std::uint32_t at) {
  Op& op = code_->ops[at];
  if (op.kind != OpKind::kAlu) return;
  using What = CompareCode::What;
  static const std::unordered_map<std::string_view, What> kCompares = {
      {"eq", What::kEq}, {"ne", What::kNe}, {"lt", What::kLt}, {"le", What::kLe},
      {"gt", What::kGt}, {"ge", What::kGe}, {"lo", What::kLt}, {"ls", What::kLe},
      {"hi", What::kGt}, {"hs", What::kGe}};
  const Instruction& in = function_.code[op.source];
  CompareCode compare;
  const Type type = in.TypeFromEnd();
  const auto what = in.modifiers.empty() ? kCompares.end() : kCompares.find(in.modifiers[0]);
  compare.exact = in.opcode != "setp" || what == kCompares.end() || type == Type::kF32 ||
                  type == Type::kF64 || ptx::SizeOf(type) < 4;
  if (what != kCompares.end()) compare.what = what->second;
  compare.is_signed = type == Type::kS32 || type == Type::kS64;
  compare.bytes = ptx::SizeOf(type) == 8 ? 8 : 4;
  // SelectAlu may have exchanged the operands (a > b as b < a).
  if (!compare.exact && op.s[0] != Place(in.operands[1], compare.bytes, false)) {
    static constexpr What kMirrored[] = {What::kEq, What::kNe, What::kGt,
                                         What::kGe, What::kLt, What::kLe};
    compare.what = kMirrored[static_cast<int>(compare.what)];
  }
  op.kind = OpKind::kTracked;
  op.aux = static_cast<std::uint32_t>(code_->compares.size());
  code_->compares.push_back(compare);
}

std::set<std::string_view> Decoder::UsedSymbols() const {
  std::set<std::string_view> used;
  std::vector<const Operand*> open;
  for (const Instruction& in : function_.code) {
    for (const Operand& operand : in.operands) open.push_back(&operand);
    while (!open.empty()) {
      const Operand& operand = *open.back();
      open.pop_back();
      if (operand.kind == Operand::Kind::kSymbol) used.insert(operand.name);
      for (const Operand& element : operand.elements) open.push_back(&element);
    }
  }
  return used;
}

void Decoder::LayOutVariables() {
  LayoutParams(function_, &code_->param_offsets, &code_->param_sizes, &code_->param_bytes);
  for (std::size_t i = 0; i < function_.params.size(); ++i) {
    params_[function_.params[i].name] = code_->param_offsets[i];
  }
  std::uint64_t shared = 0, local = 0;
  std::vector<const ptx::Variable*> dynamic;
  const auto add = [&](const ptx::Variable& variable) {
    if (variable.space == Space::kShared) {
      if (variable.unsized) {
        dynamic.push_back(&variable);
        return;
      }
      shared = AlignUp(shared, AlignOf(variable));
      shared_[variable.name] = shared;
      shared += variable.size;
    } else if (variable.space == Space::kLocal) {
      local = AlignUp(local, AlignOf(variable));
      local_[variable.name] = local;
      local += variable.size;
    }
  };
  for (const ptx::Variable& variable : function_.variables) add(variable);
  // Of the module's variables only those that this kernel names take room in its CTAs.
  const std::set<std::string_view> used = UsedSymbols();
  for (const ptx::Variable& variable : module_.variables) {
    if (used.contains(variable.name)) add(variable);
  }
  std::uint64_t align = 16;
  for (const ptx::Variable* variable : dynamic) align = std::max(align, AlignOf(*variable));
  shared = AlignUp(shared, align);
  for (const ptx::Variable* variable : dynamic) shared_[variable->name] = shared;
  code_->static_shared = static_cast<std::uint32_t>(std::min<std::uint64_t>(shared, INT32_MAX));
  code_->local_bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(AlignUp(local, 16), UINT32_MAX));
}

// Reports name the innermost position that is the user's: code inlined from the toolkit's headers
// is shown where the user called it.
void Decoder::Lines() {
  const auto is_toolkit = [&](int file) {
    if (file < 0) return true;
    const std::string& path = module_.files[static_cast<std::size_t>(file)];
    for (const char* part : {"/targets/x86_64-linux/include/", "/include/cccl/", "/include/cuda/",
                             "/include/cooperative_groups", "/include/crt/", "/include/nv/"}) {
      if (path.find(part) != std::string::npos) return true;
    }
    return path.find("/cuda") != std::string::npos && path.find("/include/") != std::string::npos;
  };
  code_->lines.resize(code_->ops.size());
  code_->forms.resize(code_->ops.size());
  for (std::size_t i = 0; i < code_->ops.size(); ++i) {
    const std::uint32_t source = code_->ops[i].source;
    if (source >= function_.code.size()) {
      code_->forms[i] = "exit";
      continue;
    }
    const Instruction& in = function_.code[source];
    code_->forms[i] = in.Form();
    ptx::SourceLoc loc = in.loc;
    for (ptx::SourceLoc at = in.loc;;) {
      if (!is_toolkit(at.file)) {
        loc = at;
        break;
      }
      if (at.inlined_at < 0) break;
      at = module_.inline_sites[static_cast<std::size_t>(at.inlined_at)].call;
    }
    if (loc.file < 0) continue;
    SourceLine& line = code_->lines[i];
    line.file = module_.files[static_cast<std::size_t>(loc.file)];
    line.line = loc.line;
    for (int at = loc.inlined_at; at >= 0;) {
      const ptx::SourceLoc& call = module_.inline_sites[static_cast<std::size_t>(at)].call;
      if (call.file >= 0) {
        line.inlined_at +=
            fmt::format("{}{}:{}", line.inlined_at.empty() ? "" : ", ",
                        module_.files[static_cast<std::size_t>(call.file)], call.line);
      }
      at = call.inlined_at;
    }
  }
}

Result<std::shared_ptr<const Code>> Decoder::Run(const ptx::KernelResources* resources) {
  code_->name = std::string(function_.name);
  flow_ = Analyse(function_);
  if (!flow_.ok) return Fail("{}: {}", function_.name, flow_.error);
  LayOutVariables();
  if (code_->local_bytes > kMaxLocalBytes) {
    return Fail("{}: {} bytes of local memory per thread; the most is {}", function_.name,
                code_->local_bytes, kMaxLocalBytes);
  }
  code_->slots = flow_.slots;
  code_->predicates = flow_.predicates;
  op_of_.resize(function_.code.size() + 1);
  for (at_ = 0; at_ < function_.code.size(); ++at_) {
    op_of_[at_] = static_cast<std::uint32_t>(code_->ops.size());
    One(function_.code[at_]);
  }
  op_of_[at_] = static_cast<std::uint32_t>(code_->ops.size());
  Op end;
  end.kind = OpKind::kExit;
  end.source = at_;
  Emit(end);
  for (BranchOp& branch : code_->branches) {
    branch.target = op_of_[branch.target];
    if (branch.reconverge != kNoPc) branch.reconverge = op_of_[branch.reconverge];
  }
  std::vector<std::int32_t> spin_of(flow_.spin_loops.size(), -1);
  for (std::size_t i = 0; i < flow_.spin_loops.size(); ++i) {
    const SpinLoop& loop = flow_.spin_loops[i];
    SpinCode spin;
    spin.outer = loop.outer;  // made an index into spins below
    spin.branch = op_of_[loop.branch];
    spin.head = op_of_[loop.head];
    for (const std::int32_t reg : loop.carried) {
      const Type type = function_.registers[static_cast<std::size_t>(reg)].type;
      const Slot slot = flow_.place[static_cast<std::size_t>(reg)];
      if (slot == kNoSlot) continue;
      spin.carried.push_back(
          {slot, static_cast<std::uint8_t>(SlotBytes(type)), type == Type::kPred});
    }
    for (const std::uint32_t at : loop.linear_compares) spin.linear_compares.push_back(op_of_[at]);
    for (const std::uint32_t at : loop.nonlinear_uses) spin.nonlinear_uses.push_back(op_of_[at]);
    std::sort(spin.linear_compares.begin(), spin.linear_compares.end());
    std::sort(spin.nonlinear_uses.begin(), spin.nonlinear_uses.end());
    const Op& op = code_->ops[spin.branch];
    if (op.kind != OpKind::kBranch) continue;
    spin_of[i] = static_cast<std::int32_t>(code_->spins.size());
    code_->branches[op.aux].spin = spin_of[i];
    code_->spins.push_back(std::move(spin));
  }
  for (SpinCode& spin : code_->spins) {
    if (spin.outer >= 0) spin.outer = spin_of[static_cast<std::size_t>(spin.outer)];
  }
  for (const SpinCode& spin : code_->spins) {
    for (const std::uint32_t at : spin.linear_compares) Track(at);
    for (const std::uint32_t at : spin.nonlinear_uses) Track(at);
  }
  if (literals_.size() > static_cast<std::size_t>(kMaxSlots)) {
    return Fail("{}: more than {} literals", function_.name, kMaxSlots);
  }
  code_->max_threads = 1024;
  const auto& limits = function_.limits;
  if (limits.max_threads[0] != 0) {
    code_->max_threads =
        std::min<std::uint32_t>(1024, limits.max_threads[0] * std::max(1u, limits.max_threads[1]) *
                                          std::max(1u, limits.max_threads[2]));
  }
  if (resources != nullptr) {
    code_->registers = std::min<std::uint32_t>(resources->registers, kMaxRegisters);
    // The real compiler may place more than the text declares; what it placed decides residency.
    code_->static_shared = std::max(
        code_->static_shared,
        static_cast<std::uint32_t>(std::min<std::uint64_t>(resources->shared_bytes, UINT32_MAX)));
  } else {
    code_->registers = static_cast<std::uint32_t>(std::clamp(flow_.slots + 8, 16, 255));
  }
  Lines();
  return std::shared_ptr<const Code>(code_);
}

}  // namespace

void LayoutParams(const ptx::Function& function, std::vector<std::uint32_t>* offsets,
                  std::vector<std::uint32_t>* sizes, std::uint32_t* bytes) {
  std::uint64_t at = 0;
  offsets->clear();
  sizes->clear();
  for (const ptx::Variable& param : function.params) {
    at = AlignUp(at, AlignOf(param));
    offsets->push_back(static_cast<std::uint32_t>(at));
    sizes->push_back(static_cast<std::uint32_t>(param.size));
    at += param.size;
  }
  *bytes = static_cast<std::uint32_t>(at);
}

Result<std::shared_ptr<const Code>> Decode(const ptx::Module& module, const ptx::Function& function,
                                           const ptx::KernelResources* resources) {
  return Decoder(module, function).Run(resources);
}

}  // namespace allranks::node
