// The decoder over a whole function; see decode.h. One() is the list of instructions it knows.
#include "node/decode.h"

#include <algorithm>
#include <unordered_map>

#include "node/decode_internal.h"

namespace allranks::node {
namespace {

constexpr std::uint32_t kMaxRegisters = 255;          // per thread, on every architecture
constexpr std::uint32_t kMaxLocalBytes = 512 * 1024;  // per thread, as on hardware

std::uint64_t AlignUp(std::uint64_t value, std::uint64_t align) {
  return align <= 1 ? value : (value + align - 1) / align * align;
}

std::uint64_t AlignOf(const ptx::Variable& variable) {
  if (variable.align != 0) return variable.align;
  return std::max(1, ptx::SizeOf(variable.type)) * std::max(1u, variable.vector);
}

}  // namespace

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
