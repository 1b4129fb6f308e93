// The small queries on a parsed module (module.h).
#include "ptx/module.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace allranks::ptx {
namespace {

struct TypeWord {
  std::string_view word;
  Type type;
};

// Ordered by frequency in nvcc's output.
constexpr TypeWord kTypeWords[] = {
    {"b32", Type::kB32},       {"b64", Type::kB64},
    {"f32", Type::kF32},       {"s32", Type::kS32},
    {"u32", Type::kU32},       {"u64", Type::kU64},
    {"s64", Type::kS64},       {"b16", Type::kB16},
    {"f64", Type::kF64},       {"pred", Type::kPred},
    {"b8", Type::kB8},         {"u16", Type::kU16},
    {"s16", Type::kS16},       {"u8", Type::kU8},
    {"s8", Type::kS8},         {"f16", Type::kF16},
    {"f16x2", Type::kF16x2},   {"bf16", Type::kBF16},
    {"bf16x2", Type::kBF16x2}, {"tf32", Type::kTF32},
    {"f32x2", Type::kF32x2},   {"b128", Type::kB128},
    {"u16x2", Type::kU16x2},   {"s16x2", Type::kS16x2},
    {"e4m3", Type::kOther},    {"e5m2", Type::kOther},
    {"e4m3x2", Type::kOther},  {"e5m2x2", Type::kOther},
    {"e4m3x4", Type::kOther},  {"e5m2x4", Type::kOther},
    {"e2m1", Type::kOther},    {"e2m3", Type::kOther},
    {"e3m2", Type::kOther},    {"e2m1x2", Type::kOther},
    {"e2m3x2", Type::kOther},  {"e3m2x2", Type::kOther},
    {"e2m1x4", Type::kOther},  {"e2m3x4", Type::kOther},
    {"e3m2x4", Type::kOther},  {"ue8m0", Type::kOther},
    {"ue8m0x2", Type::kOther}, {"ue4m3", Type::kOther},
    {"ue4m3x2", Type::kOther}, {"s2f6x2", Type::kOther},
    {"b1", Type::kOther},      {"b4", Type::kOther},
    {"b6", Type::kOther},      {"u4", Type::kOther},
    {"s4", Type::kOther},      {"u2", Type::kOther},
    {"s2", Type::kOther},      {"u8x4", Type::kOther},
    {"s8x4", Type::kOther},    {"b8x16", Type::kOther},
    {"texref", Type::kOther},  {"samplerref", Type::kOther},
    {"surfref", Type::kOther},
};

}  // namespace

int SizeOf(Type type) {
  switch (type) {
    case Type::kNone:
    case Type::kPred:
    case Type::kOther:
      return 0;
    case Type::kB8:
    case Type::kU8:
    case Type::kS8:
      return 1;
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
    case Type::kF16:
    case Type::kBF16:
      return 2;
    case Type::kB32:
    case Type::kU32:
    case Type::kS32:
    case Type::kF32:
    case Type::kTF32:
    case Type::kF16x2:
    case Type::kBF16x2:
    case Type::kU16x2:
    case Type::kS16x2:
      return 4;
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64:
    case Type::kF32x2:
      return 8;
    case Type::kB128:
      return 16;
  }
  return 0;
}

Type TypeFromWord(std::string_view word) {
  for (const TypeWord& entry : kTypeWords) {
    if (entry.word == word) return entry.type;
  }
  return Type::kNone;
}

bool Instruction::Has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

std::string Instruction::Form() const {
  std::string form(opcode);
  for (std::string_view modifier : modifiers) {
    form += '.';
    form += modifier;
  }
  return form;
}

Type Instruction::TypeFromEnd(int i) const {
  for (auto modifier = modifiers.rbegin(); modifier != modifiers.rend(); ++modifier) {
    const Type type = TypeFromWord(*modifier);
    if (type != Type::kNone && i-- == 0) return type;
  }
  return Type::kNone;
}

std::string Register::Name() const {
  return number < 0 ? std::string(name) : std::string(name) + std::to_string(number);
}

const Function* Module::FindFunction(std::string_view name) const {
  const auto found = function_index.find(name);
  return found == function_index.end() ? nullptr : &functions[found->second];
}

const Variable* Module::FindVariable(std::string_view name) const {
  const auto found = variable_index.find(name);
  return found == variable_index.end() ? nullptr : &variables[found->second];
}

Result<void> ReadBody(Module* module, Function* function) {
  if (function->reader == nullptr) return {};
  if (auto read = function->reader->Read(module, function); !read) return read;
  function->reader = nullptr;
  return {};
}

namespace {

void RenameOperands(const Renames& renames, const std::unordered_set<std::string_view>& local,
                    std::vector<Operand>* operands) {
  for (Operand& operand : *operands) {
    if (operand.kind == Operand::Kind::kSymbol && !local.contains(operand.name)) {
      const auto found = renames.find(operand.name);
      if (found != renames.end()) operand.name = found->second;
    }
    // As deep as the parser lets operands nest.
    if (!operand.elements.empty()) RenameOperands(renames, local, &operand.elements);
  }
}

}  // namespace

void Rename(const Renames& renames, Function* function) {
  if (renames.empty()) return;
  if (const auto found = renames.find(function->name); found != renames.end()) {
    function->name = found->second;
  }
  // A function's own names hide the module's.
  std::unordered_set<std::string_view> local;
  for (const auto& [label, at] : function->labels) local.insert(label);
  for (const auto& [label, prototype] : function->prototypes) local.insert(label);
  for (const auto& [label, targets] : function->target_lists) local.insert(label);
  for (const auto* variables : {&function->params, &function->results, &function->variables}) {
    for (const Variable& variable : *variables) local.insert(variable.name);
  }
  for (Instruction& in : function->code) RenameOperands(renames, local, &in.operands);
  for (auto& [label, targets] : function->target_lists) {
    for (std::string_view& target : targets) {
      const auto found = renames.find(target);
      if (found != renames.end() && !local.contains(target)) target = found->second;
    }
  }
}

}  // namespace allranks::ptx
