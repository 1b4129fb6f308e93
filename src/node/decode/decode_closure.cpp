// Which functions a kernel needs, and the shared memory that they have together. See decode.h.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>

#include "base/address_map.h"
#include "base/check.h"
#include "node/decode/decode.h"
#include "node/decode/decode_internal.h"
#include "ptx/outline.h"

namespace allranks::node {
namespace {

using ptx::Instruction;
using ptx::Operand;

// Calls visit(operand) for each operand of the instruction, also those inside others.
template <class Visit>
void ForOperands(const Instruction& in, Visit visit) {
  std::vector<const Operand*> open;
  for (const Operand& operand : in.operands) open.push_back(&operand);
  while (!open.empty()) {
    const Operand& operand = *open.back();
    open.pop_back();
    visit(operand);
    for (const Operand& element : operand.elements) open.push_back(&element);
  }
}

// The operand of a call that says what is called.
const Operand* CallTarget(const Instruction& in) {
  const std::size_t at =
      !in.operands.empty() && in.operands[0].kind == Operand::Kind::kList ? 1 : 0;
  return at < in.operands.size() ? &in.operands[at] : nullptr;
}

// Functions whose address somebody takes: in code, or in the initialiser of a variable (vtables).
std::vector<const ptx::Function*> AddressTaken(const ptx::Module& module) {
  std::vector<const ptx::Function*> taken;
  std::set<const ptx::Function*> known;
  const auto take = [&](std::string_view name) {
    const ptx::Function* function = module.FindFunction(name);
    if (function != nullptr && !function->is_entry && known.insert(function).second) {
      taken.push_back(function);
    }
  };
  for (const ptx::Variable& variable : module.variables) {
    for (const ptx::SymbolRef& ref : variable.refs) take(ref.symbol);
  }
  for (const ptx::Function& function : module.functions) {
    for (const Instruction& in : function.code) {
      const Operand* target = in.opcode == "call" ? CallTarget(in) : nullptr;
      ForOperands(in, [&](const Operand& operand) {
        if (operand.kind == Operand::Kind::kSymbol && &operand != target) take(operand.name);
      });
    }
  }
  return taken;
}

// Whether a function's body that was left for later declares shared memory.
bool DeclaresShared(const ptx::Function& function) {
  return function.outlined ? function.declares_shared : ptx::DeclaresShared(function.body_text);
}

// Whether a function's body that was left for later names a variable of the module. By the text,
// whether it has been read since or not: layouts must not depend on what ran before.
bool NamedLater(const ptx::Module& module, std::string_view name) {
  // The linker's names for what is one file's own are not in the text.
  const std::string_view written = name.substr(0, name.find('#'));
  return std::ranges::any_of(module.functions, [&](const ptx::Function& function) {
    if (function.is_entry) return false;
    return function.outlined
               ? std::ranges::find(function.names_shared, written) != function.names_shared.end()
               : function.body_text.find(written) != std::string_view::npos;
  });
}

}  // namespace

std::optional<std::uint64_t> FunctionAddress(const ptx::Module& module, std::string_view name) {
  const ptx::Function* function = module.FindFunction(name);
  if (function == nullptr) return std::nullopt;
  const auto number = static_cast<std::uint64_t>(function - module.functions.data());
  return kFunctionWindow + 16 * (number + 1);
}

Result<void> Closure::AddOne(const ptx::Function* function) {
  if (function == nullptr || !function->has_body) return {};
  if (!number.try_emplace(function, static_cast<std::int32_t>(functions.size())).second) return {};
  functions.push_back(function);
  if (function->reader == nullptr) return {};
  CHECK(later_ != nullptr);
  return ptx::ReadBody(
      later_, &later_->functions[static_cast<std::size_t>(function - module.functions.data())]);
}

Result<void> Closure::Add(const ptx::Function* function) {
  std::size_t next = functions.size();
  if (auto added = AddOne(function); !added) return added;
  for (; next < functions.size(); ++next) {
    for (const Instruction& in : functions[next]->code) {
      if (in.opcode != "call") continue;
      const Operand* target = CallTarget(in);
      if (target == nullptr) continue;
      if (target->kind == Operand::Kind::kSymbol) {
        const ptx::Function* callee = module.FindFunction(target->name);
        if (callee == nullptr || callee->is_entry) continue;
        if (auto added = AddOne(callee); !added) return added;
      } else if (!indirect) {
        indirect = true;
        if (auto added = AddByPointer(); !added) return added;
      }
    }
  }
  return {};
}

// What may be called by pointer. A body that was left for later is read if its function is called;
// but shared memory is laid out before that, so those that declare some are needed now.
Result<void> Closure::AddByPointer() {
  if (later_ != nullptr) {
    for (const ptx::Function& function : module.functions) {
      if (function.is_entry || !DeclaresShared(function)) continue;
      if (auto added = AddOne(&function); !added) return added;
    }
    return {};
  }
  for (const ptx::Function* function : AddressTaken(module)) {
    if (auto added = AddOne(function); !added) return added;
  }
  return {};
}

Result<void> Closure::Build(const ptx::Function& entry) {
  if (auto added = Add(&entry); !added) return added;
  PlaceShared();
  return {};
}

void Closure::PlaceShared() {
  // Of the module's variables only those that these functions name take room in a CTA.
  std::set<std::string_view> used;
  for (const ptx::Function* function : functions) {
    for (const Instruction& in : function->code) {
      ForOperands(in, [&](const Operand& operand) {
        if (operand.kind == Operand::Kind::kSymbol) used.insert(operand.name);
      });
    }
  }
  if (indirect && later_ != nullptr) {
    // A search takes as long as the text is, so it is made for few.
    constexpr std::ptrdiff_t kSearched = 64;
    const bool all = std::ranges::count(module.variables, ptx::Space::kShared,
                                        &ptx::Variable::space) > kSearched;
    for (const ptx::Variable& variable : module.variables) {
      if (variable.space == ptx::Space::kShared && (all || NamedLater(module, variable.name)))
        used.insert(variable.name);
    }
  }
  std::uint64_t bytes = 0, align = 16;
  std::vector<const ptx::Variable*> dynamic;
  const auto add_array = [&](const ptx::Variable& variable, std::uint64_t begin,
                             std::uint64_t end) {
    if (end > INT32_MAX || code->arrays.size() >= INT16_MAX) return;
    arrays[variable.name] = static_cast<std::int16_t>(code->arrays.size());
    code->arrays.push_back({std::string(variable.name), static_cast<std::uint32_t>(begin),
                            static_cast<std::uint32_t>(end)});
  };
  const auto place = [&](const ptx::Variable& variable) {
    if (variable.space != ptx::Space::kShared || !used.contains(variable.name)) return;
    if (variable.unsized) {
      dynamic.push_back(&variable);
      align = std::max(align, AlignOf(variable));
      return;
    }
    bytes = AlignUp(bytes, AlignOf(variable));
    shared[variable.name] = bytes;
    add_array(variable, bytes, bytes + variable.size);
    bytes += variable.size;
  };
  for (const ptx::Function* function : functions) {
    for (const ptx::Variable& variable : function->variables) place(variable);
  }
  for (const ptx::Variable& variable : module.variables) place(variable);
  bytes = AlignUp(bytes, align);
  for (const ptx::Variable* variable : dynamic) shared[variable->name] = bytes;
  if (!dynamic.empty()) {
    add_array(*dynamic.front(), bytes, INT32_MAX);
    for (const ptx::Variable* variable : dynamic) {
      const auto first = arrays.find(dynamic.front()->name);
      if (first != arrays.end()) arrays[variable->name] = first->second;
    }
  }
  code->static_shared = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, INT32_MAX));
}

}  // namespace allranks::node
