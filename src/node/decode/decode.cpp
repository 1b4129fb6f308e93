// The decoder over a whole function; see decode.h. opcodes.def is the list of instructions it
// knows.
#include "node/decode/decode.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <unordered_map>

#include "base/check.h"
#include "node/decode/decode_internal.h"
#include "node/decode/opcodes.h"

namespace allranks::node {
namespace {

constexpr std::uint32_t kMaxRegisters = 255;          // per thread, on every architecture
constexpr std::uint32_t kMaxLocalBytes = 512 * 1024;  // per thread, as on hardware

// Code that grows: the least room of its frames, in slots, and for how many operations more.
constexpr int kGrowingWide = 256, kGrowingNarrow = 256;
constexpr std::size_t kGrowingOps = std::size_t{1} << 19;

}  // namespace

void Decoder::One(const Instruction& in) {
  if (!Known(in)) {
    const bool unread = HasNoEffect(in);
    Emit(Start(in, unread ? OpKind::kNop : OpKind::kUnsupported));
    if (!unread) code_->unsupported.push_back(in.Form());
  }
}

bool Decoder::Known(const Instruction& in) {
  const auto emit = [&](OpKind kind) {
    Emit(Start(in, kind));
    return true;
  };
  if (IsAsync(in)) return Async(in);
  switch (FindOpcode(in.opcode).group) {
    case OpcodeGroup::kLoad:
      return LoadStore(in, true);
    case OpcodeGroup::kStore:
      return LoadStore(in, false);
    case OpcodeGroup::kAtomic:
      return Atomic(in, false);
    case OpcodeGroup::kReduction:
      return Atomic(in, true);
    case OpcodeGroup::kMultimem:
      return Multimem(in);
    case OpcodeGroup::kFence:
      return Fence(in);
    case OpcodeGroup::kCacheHint:
      return CacheHint(in);
    case OpcodeGroup::kPolicy:
      return CreatePolicy(in);
    case OpcodeGroup::kTensormap:
      return TensormapReplace(in);
    case OpcodeGroup::kBranch:
      return Branch(in);
    case OpcodeGroup::kBranchIndexed:
      return BranchIndexed(in);
    case OpcodeGroup::kCall:
      return Call(in);
    case OpcodeGroup::kExit:
      return emit(in.opcode == "ret" && !IsEntry() ? OpKind::kReturn : OpKind::kExit);
    case OpcodeGroup::kTrap:
      return emit(OpKind::kTrap);
    case OpcodeGroup::kNothing:
      return emit(OpKind::kNop);
    case OpcodeGroup::kGrid: {
      Op op = Start(in, OpKind::kGridWait);
      op.imm = in.Has("launch_dependents") ? 1 : 0;
      Emit(op);
      return true;
    }
    case OpcodeGroup::kSleep: {
      Op op = Start(in, OpKind::kSleep);
      op.s[0] = in.operands.empty() ? kNoSlot : Place(in.operands[0], 4, false);
      if (op.s[0] != kNoSlot) Emit(op);
      return op.s[0] != kNoSlot;
    }
    case OpcodeGroup::kBarrier:
      return in.Has("warp") ? Warp(in) : Barrier(in);
    case OpcodeGroup::kWarp:
      return Warp(in);
    case OpcodeGroup::kMatrix:
      return Matrix(in);
    case OpcodeGroup::kAlu:
      return (in.opcode == "mov" && Mov(in)) || Alu(in);
    case OpcodeGroup::kAsync:
    case OpcodeGroup::kNone:
      return false;
  }
  return false;
}

// It touches registers only, and nobody reads the one that it writes. Then its meaning does not
// matter, and a program cannot make it look as if that were missing.
bool Decoder::HasNoEffect(const Instruction& in) const {
  static constexpr std::string_view kOfRegisters[] = {"stacksave", "istypep", "fns", "bmsk",
                                                      "szext",     "tanh",    "sad"};
  if (std::find(std::begin(kOfRegisters), std::end(kOfRegisters), in.opcode) ==
          std::end(kOfRegisters) ||
      in.operands.empty() || in.operands[0].kind != Operand::Kind::kReg)
    return false;
  const std::int32_t written = in.operands[0].reg;
  const std::function<bool(const Operand&)> names = [&](const Operand& operand) {
    return (operand.reg == written && operand.kind == Operand::Kind::kReg) ||
           std::any_of(operand.elements.begin(), operand.elements.end(), names);
  };
  std::size_t named = 0;
  for (const Instruction& other : function_.code) {
    for (const Operand& operand : other.operands) named += names(operand) ? 1 : 0;
    if (other.guard == written) ++named;
  }
  return named == 1;
}

void Decoder::Track(std::uint32_t at) {
  Op& op = code_->ops[at];
  if (op.kind != OpKind::kAlu) return;
  using Comparison = CompareCode::Comparison;
  static const std::unordered_map<std::string_view, Comparison> kCompares = {
      {"eq", Comparison::kEq}, {"ne", Comparison::kNe}, {"lt", Comparison::kLt},
      {"le", Comparison::kLe}, {"gt", Comparison::kGt}, {"ge", Comparison::kGe},
      {"lo", Comparison::kLt}, {"ls", Comparison::kLe}, {"hi", Comparison::kGt},
      {"hs", Comparison::kGe}};
  const Instruction& in = function_.code[op.source];
  CompareCode compare;
  const Type type = in.TypeFromEnd();
  const auto what = in.modifiers.empty() ? kCompares.end() : kCompares.find(in.modifiers[0]);
  compare.exact = in.opcode != "setp" || what == kCompares.end() || type == Type::kF32 ||
                  type == Type::kF64 || ptx::SizeOf(type) < 4;
  if (what != kCompares.end()) compare.comparison = what->second;
  compare.is_signed = type == Type::kS32 || type == Type::kS64;
  compare.bytes = ptx::SizeOf(type) == 8 ? 8 : 4;
  // SelectAlu may have exchanged the operands (a > b as b < a).
  if (!compare.exact && op.s[0] != Place(in.operands[1], compare.bytes, false)) {
    static constexpr Comparison kMirrored[] = {Comparison::kEq, Comparison::kNe, Comparison::kGt,
                                               Comparison::kGe, Comparison::kLt, Comparison::kLe};
    compare.comparison = kMirrored[static_cast<int>(compare.comparison)];
  }
  op.kind = OpKind::kTracked;
  op.aux = static_cast<std::uint32_t>(code_->compares.size());
  code_->compares.push_back(compare);
}

void Decoder::LayOutVariables() {
  std::uint64_t local = 0;
  const auto add = [&](const ptx::Variable& variable) {
    local = AlignUp(local, AlignOf(variable));
    frame_[variable.name] = {static_cast<std::uint32_t>(std::min<std::uint64_t>(local, UINT32_MAX)),
                             static_cast<std::uint32_t>(variable.size)};
    local += variable.size;
  };
  FunctionCode& function = code_->functions.back();
  if (IsEntry()) {
    LayoutParams(function_, &code_->param_offsets, &code_->param_sizes, &code_->param_bytes);
    for (std::size_t i = 0; i < function_.params.size(); ++i) {
      params_[function_.params[i].name] = code_->param_offsets[i];
    }
  } else {
    for (const ptx::Variable& param : function_.params) {
      add(param);
      function.params.push_back(frame_[param.name]);
    }
    for (const ptx::Variable& result : function_.results) {
      add(result);
      function.results.push_back(frame_[result.name]);
    }
  }
  for (const ptx::Variable& variable : function_.variables) {
    if (variable.space == Space::kLocal || variable.space == Space::kParam) add(variable);
  }
  for (const ptx::Variable& variable : module_.variables) {
    if (variable.space == Space::kLocal) add(variable);
  }
  function.local_bytes =
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
  for (std::size_t i = begin_; i < code_->ops.size(); ++i) {
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
    line.column = loc.column;
    for (int at = loc.inlined_at; at >= 0;) {
      const ptx::InlineSite& site = module_.inline_sites[static_cast<std::size_t>(at)];
      const ptx::SourceLoc& call = site.call;
      if (call.file >= 0) {
        line.calls.push_back({module_.files[static_cast<std::size_t>(call.file)], call.line,
                              call.column, std::string(site.function)});
        line.inlined_at +=
            fmt::format("{}{}:{}", line.inlined_at.empty() ? "" : ", ",
                        module_.files[static_cast<std::size_t>(call.file)], call.line);
      }
      at = call.inlined_at;
    }
  }
}

void Decoder::Spins() {
  const std::size_t first = code_->spins.size();
  std::vector<std::int32_t> spin_of(flow_.spin_loops.size(), -1);
  for (std::size_t i = 0; i < flow_.spin_loops.size(); ++i) {
    const SpinLoop& loop = flow_.spin_loops[i];
    SpinCode spin;
    spin.outer = loop.outer;  // made an index into spins below
    spin.branch = op_of_[loop.branch];
    spin.head = op_of_[loop.head];
    spin.seldom = loop.seldom;
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
  for (std::size_t i = first; i < code_->spins.size(); ++i) {
    SpinCode& spin = code_->spins[i];
    if (spin.outer >= 0) spin.outer = spin_of[static_cast<std::size_t>(spin.outer)];
  }
  for (std::size_t i = first; i < code_->spins.size(); ++i) {
    for (const std::uint32_t at : code_->spins[i].linear_compares) Track(at);
    for (const std::uint32_t at : code_->spins[i].nonlinear_uses) Track(at);
  }
}

Result<void> Decoder::Prepare() {
  index_ = code_->functions.size();
  code_->functions.emplace_back();
  LayOutVariables();
  FindLaunchConstants();
  FindArrays();
  std::vector<bool> constant(constant_slot_.size());
  for (std::size_t i = 0; i < constant.size(); ++i) constant[i] = constant_slot_[i] != kNoSlot;
  flow_ = Analyse(function_, constant);
  if (!flow_.ok) return Fail("{}: {}", function_.name, flow_.error);
  code_->reads_unset |= flow_.reads_unset;
  FunctionCode& function = code_->functions[index_];
  function.name = std::string(function_.name);
  function.slots = static_cast<std::uint32_t>(flow_.slots);
  function.wide_slots = static_cast<std::uint32_t>(flow_.wide_slots);
  function.wide_used = function.wide_slots;
  function.narrow_used = function.slots - function.wide_slots;
  if (function.local_bytes > kMaxLocalBytes) {
    return Fail("{}: {} bytes of local memory per thread; the most is {}", function_.name,
                function.local_bytes, kMaxLocalBytes);
  }
  return {};
}

void Decoder::Shape(int wide_slots, int slots) {
  const int shift = wide_slots - flow_.wide_slots;
  for (std::size_t reg = 0; reg < flow_.place.size(); ++reg) {
    const Type type = function_.registers[reg].type;
    if (flow_.place[reg] != kNoSlot && type != Type::kPred && SlotBytes(type) == 4) {
      flow_.place[reg] = static_cast<Slot>(flow_.place[reg] + shift);
    }
  }
  code_->functions[index_].slots = static_cast<std::uint32_t>(slots);
  code_->functions[index_].wide_slots = static_cast<std::uint32_t>(wide_slots);
}

Result<void> Decoder::Run() {
  begin_ = static_cast<std::uint32_t>(code_->ops.size());
  FunctionCode& function = code_->functions[index_];
  function.begin = begin_;
  predicates_ = flow_.predicates;
  const std::size_t first_branch = code_->branches.size(), first_table = code_->tables.size();
  op_of_.resize(function_.code.size() + 1);
  std::vector<bool> labelled(function_.code.size() + 1, false);
  for (const auto& [name, index] : function_.labels) labelled[index] = true;
  for (at_ = 0; at_ < function_.code.size(); ++at_) {
    if (labelled[at_] || skipped_ == 100) FlushSkipped();
    op_of_[at_] = static_cast<std::uint32_t>(code_->ops.size());
    if (constant_move_[at_]) {
      ++skipped_;
    } else {
      One(function_.code[at_]);
    }
  }
  FlushSkipped();
  op_of_[at_] = static_cast<std::uint32_t>(code_->ops.size());
  Op end;
  end.kind = IsEntry() ? OpKind::kExit : OpKind::kReturn;
  end.source = at_;
  Emit(end);
  for (std::size_t i = first_branch; i < code_->branches.size(); ++i) {
    BranchOp& branch = code_->branches[i];
    branch.target = op_of_[branch.target];
    if (branch.reconverge != kNoPc) branch.reconverge = op_of_[branch.reconverge];
  }
  for (std::size_t i = first_table; i < code_->tables.size(); ++i) {
    BranchTable& table = code_->tables[i];
    for (std::uint32_t& target : table.targets) target = op_of_[target];
    if (table.reconverge != kNoPc) table.reconverge = op_of_[table.reconverge];
  }
  Spins();
  MarkRuns();
  Lines();
  function.end = static_cast<std::uint32_t>(code_->ops.size());
  function.predicates = static_cast<std::uint32_t>(predicates_);
  return {};
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

// The functions of one code, decoded one after the other.
class Decoding {
 public:
  Decoding(const ptx::Module& module, ptx::Module* later) : closure_(module, later) {}

  Result<void> Start(const ptx::Function& function, const ptx::KernelResources* resources);
  Result<void> Add(const ptx::Function& function);
  const std::shared_ptr<Code>& code() const { return closure_.code; }
  const ptx::Module& module() const { return closure_.module; }
  bool indirect() const { return closure_.indirect; }
  void Reserve();

 private:
  Result<void> Prepare();
  Result<void> Run();
  bool HasRoom() const;

  Closure closure_;
  std::deque<Decoder> decoders_;
  std::size_t decoded_ = 0;    // of them
  int wide_ = 0, narrow_ = 0;  // the shape of frames
  bool shaped_ = false;        // it is fixed
  bool broken_ = false;        // a function could not be added
};

Result<void> Decoding::Prepare() {
  for (std::size_t i = decoders_.size(); i < closure_.functions.size(); ++i) {
    Decoder& decoder = decoders_.emplace_back(closure_, *closure_.functions[i]);
    if (auto prepared = decoder.Prepare(); !prepared) return Fail(prepared.error());
    const int wide = decoder.flow().wide_slots, narrow = decoder.flow().slots - wide;
    if (shaped_ && (wide > wide_ || narrow > narrow_)) {
      return Fail("{}: more registers live at once than frames have that were made before",
                  closure_.functions[i]->name);
    }
    wide_ = std::max(wide_, wide);
    narrow_ = std::max(narrow_, narrow);
  }
  return {};
}

Result<void> Decoding::Run() {
  // Lanes of one warp may be in different functions at different depths. They do not disturb each
  // other as long as a slot has the same width in all frames that may lie there: so all frames of a
  // code have one shape.
  const int frame = (wide_ + narrow_ + 1) / 2 * 2;
  const std::string_view name = closure_.functions[0]->name;
  if (frame > kMaxSlots)
    return Fail("{}: more registers live at once than fit in all its functions", name);
  for (; decoded_ < decoders_.size(); ++decoded_) {
    Decoder& decoder = decoders_[decoded_];
    if (decoders_.size() > 1 || shaped_) decoder.Shape(wide_, frame);
    if (auto decoded = decoder.Run(); !decoded) return Fail(decoded.error());
  }
  if (closure_.literals.size() > static_cast<std::size_t>(kMaxSlots))
    return Fail("{}: more than {} literals", name, kMaxSlots);
  Code& code = *closure_.code;
  const ptx::Module& module = closure_.module;
  code.function_of.resize(module.functions.size(), -1);
  for (const auto& [function, number] : closure_.number) {
    if (number != 0)
      code.function_of[static_cast<std::size_t>(function - module.functions.data())] = number;
  }
  return {};
}

Result<void> Decoding::Start(const ptx::Function& function, const ptx::KernelResources* resources) {
  if (auto built = closure_.Build(function); !built) return Fail(built.error());
  Code& code = *closure_.code;
  code.name = std::string(function.name);
  if (auto prepared = Prepare(); !prepared) return prepared;
  int slots = 0;
  for (const Decoder& decoder : decoders_) slots = std::max(slots, decoder.flow().slots);
  if (closure_.indirect && closure_.later() != nullptr) {
    wide_ = std::max(wide_, kGrowingWide);
    narrow_ = std::max(narrow_, kGrowingNarrow);
    shaped_ = true;
  }
  if (auto decoded = Run(); !decoded) return decoded;
  const FunctionCode& entry = code.functions[0];
  code.slots = static_cast<int>(entry.slots);
  code.predicates = static_cast<int>(entry.predicates);
  code.local_bytes = entry.local_bytes;
  code.max_threads = MaxThreads(function);
  std::copy_n(function.limits.cluster, 3, code.cluster);
  if (resources != nullptr) {
    code.registers = std::min<std::uint32_t>(resources->registers, kMaxRegisters);
    // The real compiler may place more than the text declares; what it placed decides residency. Of
    // a kernel that is linked from several files it says only what the kernel's own file needs.
    const auto placed =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(resources->shared_bytes, UINT32_MAX));
    code.static_shared = std::max(code.static_shared, placed);
    code.counted_shared = closure_.later() != nullptr ? placed : code.static_shared;
  } else {
    code.registers = std::clamp(static_cast<std::uint32_t>(slots) + 8, 16u, kMaxRegisters);
    code.counted_shared = code.static_shared;
  }
  return {};
}

void Decoding::Reserve() {
  Code& code = *closure_.code;
  const auto reserve = [](auto&... tables) { (tables.reserve(tables.size() + kGrowingOps), ...); };
  reserve(code.ops, code.memory, code.branches, code.tables, code.calls, code.functions,
          code.barriers, code.warp_ops, code.matrices, code.async, code.spins, code.compares,
          code.forms, code.lines);
}

// Whether what is prepared fits without moving anything. An instruction is at most this many
// operations, and fewer entries of any other table.
bool Decoding::HasRoom() const {
  constexpr std::size_t kMostOps = 8;
  std::size_t instructions = 0;
  for (std::size_t i = decoded_; i < closure_.functions.size(); ++i)
    instructions += closure_.functions[i]->code.size() + 1;
  const Code& code = *closure_.code;
  const auto fits = [&](std::size_t most, const auto&... tables) {
    return ((tables.size() + most <= tables.capacity()) && ...);
  };
  return fits(instructions * kMostOps, code.ops, code.forms, code.lines) &&
         fits(instructions, code.memory, code.branches, code.tables, code.calls, code.functions,
              code.barriers, code.warp_ops, code.matrices, code.async, code.spins, code.compares);
}

Result<void> Decoding::Add(const ptx::Function& function) {
  if (broken_) return Fail("{}: a function before it could not be decoded", function.name);
  broken_ = true;
  if (auto added = closure_.Add(&function); !added) return added;
  if (!HasRoom())
    return Fail("{}: more functions are called by pointer than fit", closure_.code->name);
  if (auto prepared = Prepare(); !prepared) return prepared;
  if (auto decoded = Run(); !decoded) return decoded;
  broken_ = false;
  return {};
}

std::uint32_t MaxThreads(const ptx::Function& function) {
  const auto& most = function.limits.max_threads;
  if (most[0] == 0) return 1024;
  return std::min<std::uint32_t>(1024, most[0] * std::max(1u, most[1]) * std::max(1u, most[2]));
}

Result<std::shared_ptr<const Code>> Decode(const ptx::Module& module, const ptx::Function& function,
                                           const ptx::KernelResources* resources) {
  Decoding decoding(module, nullptr);
  if (auto started = decoding.Start(function, resources); !started) return Fail(started.error());
  return std::shared_ptr<const Code>(decoding.code());
}

GrowingCode::GrowingCode(std::unique_ptr<Decoding> decoding)
    : decoding_(std::move(decoding)), code_(decoding_->code()) {
  if (!decoding_->indirect()) return;
  decoding_->Reserve();
  decoding_->code()->growing = this;
}

GrowingCode::~GrowingCode() = default;

Result<std::unique_ptr<GrowingCode>> GrowingCode::Make(ptx::Module* module, std::string_view kernel,
                                                       const ptx::KernelResources* resources) {
  const ptx::Function* function = module->FindFunction(kernel);
  CHECK(function != nullptr);
  auto decoding = std::make_unique<Decoding>(*module, module);
  if (auto started = decoding->Start(*function, resources); !started) return Fail(started.error());
  return std::unique_ptr<GrowingCode>(new GrowingCode(std::move(decoding)));
}

Result<void> GrowingCode::Grow(std::size_t number) {
  const auto& functions = decoding_->module().functions;
  if (number >= functions.size() || functions[number].is_entry || !functions[number].has_body)
    return Fail("not a function of this module");
  return decoding_->Add(functions[number]);
}

}  // namespace allranks::node
