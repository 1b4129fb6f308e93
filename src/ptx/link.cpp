// The device linker; see link.h. Three passes: choose one definition for every name that is shared
// between inputs, rename what belongs to one file and stands in another's way, then move the chosen
// functions and variables into one module, with file numbers and inlined call sites counted on.
#include "ptx/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/check.h"

namespace allranks::ptx {
namespace {

constexpr std::size_t kMaxErrors = 20;

// How a name of one input may be seen by the others, weakest first.
enum class Binding : std::uint8_t { kReference, kCommon, kWeak, kStrong, kInternal };

Binding BindingOf(const Variable& variable) {
  if (variable.is_extern) return Binding::kReference;
  if (variable.is_common) return Binding::kCommon;
  if (variable.is_weak) return Binding::kWeak;
  return variable.is_visible ? Binding::kStrong : Binding::kInternal;
}

// A function that is declared but not defined, and not as .extern, is a reference too: nvcc writes
// prototypes of what an alias or another file defines.
Binding BindingOf(const Function& function, bool has_alias) {
  if (!function.has_body && !has_alias) return Binding::kReference;
  if (function.is_weak) return Binding::kWeak;
  return function.is_visible || function.is_extern ? Binding::kStrong : Binding::kInternal;
}

bool SameParameters(const std::vector<Variable>& a, const std::vector<Variable>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.unsized || y.unsized || x.size == y.size;
  });
}

// `extern __shared__ T x[]`: not a reference but the CTA's dynamic memory, the same in every file.
bool IsDynamicShared(const Variable& variable) {
  return variable.space == Space::kShared && variable.is_extern;
}

class Linker {
 public:
  Linker(std::vector<LinkInput> inputs, const std::function<bool(std::string_view)>& provided)
      : inputs_(std::move(inputs)), provided_(provided), renames_(inputs_.size()) {}

  Result<Module> Run();

 private:
  // What a shared name stands for: the best definition so far.
  struct Symbol {
    std::size_t input = 0;
    Binding binding = Binding::kReference;
    bool is_function = false;
    const Variable* variable = nullptr;
    const Function* function = nullptr;  // of an alias: what it names
    std::uint64_t common_size = 0, align = 0;
  };

  template <class... Args>
  void Complain(fmt::format_string<Args...> format, Args&&... args) {
    if (++error_count_ > kMaxErrors) return;
    errors_ += fmt::format("{}{}", errors_.empty() ? "" : "\n",
                           fmt::format(format, std::forward<Args>(args)...));
  }

  void Collect(std::size_t input);
  void Offer(std::string_view name, Symbol symbol);
  void CheckAgainst(std::string_view name, const Symbol& known, const Symbol& symbol);
  void RenameInternals(std::size_t input);
  void Move(std::size_t input);
  void MoveAliases(std::size_t input);
  void CheckReferences();
  bool Chosen(std::size_t input, std::string_view name) const;

  std::vector<LinkInput> inputs_;
  const std::function<bool(std::string_view)>& provided_;
  std::unordered_map<std::string_view, Symbol> symbols_;           // names that inputs share
  std::unordered_set<std::string_view> taken_;                     // names of the result
  std::vector<Renames> renames_;                                   // by input
  std::unordered_map<std::string_view, std::string_view> origin_;  // function → its input's name
  Module out_;
  std::string errors_;
  std::size_t error_count_ = 0;
};

void Linker::CheckAgainst(std::string_view name, const Symbol& known, const Symbol& symbol) {
  const std::string& here = inputs_[symbol.input].name;
  const std::string& first = inputs_[known.input].name;
  if (known.is_function != symbol.is_function) {
    Complain("'{}' is a function in one of '{}' and '{}' and a variable in the other", name, first,
             here);
  } else if (known.is_function) {
    if (known.function->is_entry != symbol.function->is_entry ||
        !SameParameters(known.function->params, symbol.function->params) ||
        !SameParameters(known.function->results, symbol.function->results)) {
      Complain("Prototype doesn't match for '{}' in '{}', first specified in '{}'", name, here,
               first);
    }
  } else {
    const Variable &a = *known.variable, &b = *symbol.variable;
    if (a.space != b.space) {
      Complain("Memory space doesn't match for '{}' in '{}', first specified in '{}'", name, here,
               first);
    } else if (a.size != b.size && !a.unsized && !b.unsized && !a.is_common && !b.is_common) {
      Complain("Size doesn't match for '{}' in '{}', first specified in '{}'", name, here, first);
    }
  }
}

void Linker::Offer(std::string_view name, Symbol symbol) {
  const auto [found, added] = symbols_.try_emplace(name, symbol);
  if (added) return;
  Symbol& known = found->second;
  CheckAgainst(name, known, symbol);
  if (known.binding == Binding::kStrong && symbol.binding == Binding::kStrong) {
    Complain("Multiple definition of '{}' in '{}', first defined in '{}'", name,
             inputs_[symbol.input].name, inputs_[known.input].name);
    return;
  }
  const std::uint64_t common_size = std::max(known.common_size, symbol.common_size);
  const std::uint64_t align = std::max(known.align, symbol.align);
  if (symbol.binding > known.binding) known = symbol;
  known.common_size = common_size;
  known.align = align;
}

void Linker::Collect(std::size_t input) {
  const Module& module = inputs_[input].module;
  for (const Variable& variable : module.variables) {
    Symbol symbol;
    symbol.input = input;
    symbol.variable = &variable;
    symbol.binding = BindingOf(variable);
    symbol.align = variable.align;
    symbol.common_size = variable.is_common ? variable.size : 0;
    if (symbol.binding != Binding::kInternal) Offer(variable.name, symbol);
  }
  std::unordered_set<std::string_view> aliases;
  for (const Alias& alias : module.aliases) aliases.insert(alias.name);
  for (const Function& function : module.functions) {
    Symbol symbol;
    symbol.input = input;
    symbol.is_function = true;
    symbol.function = &function;
    symbol.binding = BindingOf(function, aliases.contains(function.name));
    if (symbol.binding != Binding::kInternal) Offer(function.name, symbol);
  }
}

bool Linker::Chosen(std::size_t input, std::string_view name) const {
  const auto found = symbols_.find(name);
  return found == symbols_.end() || found->second.input == input;
}

// Shared names have been taken by now, all of them: what is left belongs to this input alone.
void Linker::RenameInternals(std::size_t input) {
  Module& module = inputs_[input].module;
  const auto visit = [&](std::string_view name) {
    if (taken_.insert(name).second) return;
    std::string fresh = fmt::format("{}#file{}", name, input + 1);
    while (taken_.contains(fresh)) fresh += '#';
    out_.owned.push_back(std::make_unique<std::string>(std::move(fresh)));
    taken_.insert(*out_.owned.back());
    renames_[input].emplace(name, *out_.owned.back());
  };
  for (const Variable& variable : module.variables) {
    if (BindingOf(variable) == Binding::kInternal) visit(variable.name);
  }
  std::unordered_set<std::string_view> aliases, declared;
  for (const Alias& alias : module.aliases) aliases.insert(alias.name);
  for (const Function& function : module.functions) {
    declared.insert(function.name);
    if (BindingOf(function, aliases.contains(function.name)) == Binding::kInternal) {
      visit(function.name);
    }
  }
  for (const std::string_view alias : aliases) {
    if (!declared.contains(alias)) visit(alias);  // without a prototype: the file's own
  }
}

void Linker::Move(std::size_t input) {
  Module& module = inputs_[input].module;
  const Renames& renames = renames_[input];
  const auto file_base = static_cast<std::int32_t>(out_.files.size());
  const auto site_base = static_cast<std::int32_t>(out_.inline_sites.size());
  const auto shift = [&](SourceLoc* loc) {
    if (loc->file >= 0) loc->file += file_base;
    if (loc->inlined_at >= 0) loc->inlined_at += site_base;
  };
  for (std::string& file : module.files) out_.files.push_back(std::move(file));
  for (InlineSite site : module.inline_sites) {
    shift(&site.call);
    out_.inline_sites.push_back(site);
  }

  // Looked up while the inputs are still whole: moving a function away empties its name's users.
  std::vector<bool> keep_function, keep_variable;
  for (const Function& function : module.functions) {
    keep_function.push_back(Chosen(input, function.name));
  }
  for (const Variable& variable : module.variables) {
    keep_variable.push_back(Chosen(input, variable.name));
  }
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    Variable& variable = module.variables[i];
    const bool internal = BindingOf(variable) == Binding::kInternal;
    if (!internal && !keep_variable[i]) continue;
    if (!internal) {
      const Symbol& symbol = symbols_.at(variable.name);
      variable.align = std::max(variable.align, symbol.align);
      if (variable.is_common) variable.size = std::max(variable.size, symbol.common_size);
    } else if (const auto found = renames.find(variable.name); found != renames.end()) {
      variable.name = found->second;
    }
    for (SymbolRef& ref : variable.refs) {
      if (const auto found = renames.find(ref.symbol); found != renames.end()) {
        ref.symbol = found->second;
      }
    }
    out_.variable_index.emplace(variable.name, static_cast<std::uint32_t>(out_.variables.size()));
    out_.variables.push_back(std::move(variable));
  }
  std::unordered_set<std::string_view> aliases;
  for (const Alias& alias : module.aliases) aliases.insert(alias.name);
  const BodyReader* known_reader = nullptr;
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    Function& function = module.functions[i];
    const bool internal =
        BindingOf(function, aliases.contains(function.name)) == Binding::kInternal;
    if (!internal && !keep_function[i]) continue;
    for (Instruction& in : function.code) shift(&in.loc);
    Rename(renames, &function);
    if (function.reader != nullptr && function.reader.get() != known_reader) {
      known_reader = function.reader.get();
      function.reader->SetLinked(file_base, site_base, renames);
    }
    origin_.emplace(function.name, inputs_[input].name);
    out_.function_index.emplace(function.name, static_cast<std::uint32_t>(out_.functions.size()));
    out_.functions.push_back(std::move(function));
  }
}

// After all functions have their places. An alias that another input's definition replaced is gone.
void Linker::MoveAliases(std::size_t input) {
  const Renames& renames = renames_[input];
  for (Alias alias : inputs_[input].module.aliases) {
    const bool internal = renames.contains(alias.name) || !symbols_.contains(alias.name);
    if (!internal && !Chosen(input, alias.name)) continue;
    if (const auto found = renames.find(alias.name); found != renames.end()) {
      alias.name = found->second;
    }
    if (const auto found = renames.find(alias.target); found != renames.end()) {
      alias.target = found->second;
    }
    const auto target = out_.function_index.find(alias.target);
    if (target == out_.function_index.end()) continue;
    out_.function_index[alias.name] = target->second;
    out_.aliases.push_back(alias);
  }
}

void Linker::CheckReferences() {
  std::unordered_set<std::string_view> told;
  const auto check = [&](std::string_view name, std::string_view input) {
    if (const auto function = out_.function_index.find(name);
        function != out_.function_index.end()) {
      if (out_.functions[function->second].has_body || provided_(name)) return;
    } else if (const auto variable = out_.variable_index.find(name);
               variable != out_.variable_index.end()) {
      const Variable& found = out_.variables[variable->second];
      if (!found.is_extern || IsDynamicShared(found)) return;
    } else {
      return;  // a name of the function's own
    }
    if (told.insert(name).second) Complain("Undefined reference to '{}' in '{}'", name, input);
  };
  for (const Function& function : out_.functions) {
    const auto origin = origin_.find(function.name);
    const std::string_view input = origin == origin_.end() ? "" : origin->second;
    std::vector<const Operand*> open;
    for (const Instruction& in : function.code) {
      for (const Operand& operand : in.operands) open.push_back(&operand);
      while (!open.empty()) {
        const Operand& operand = *open.back();
        open.pop_back();
        // What the function itself declares hides what the module has; those names are rarely
        // equal.
        if (operand.kind == Operand::Kind::kSymbol && !function.labels.contains(operand.name)) {
          check(operand.name, input);
        }
        for (const Operand& element : operand.elements) open.push_back(&element);
      }
    }
  }
  for (const Variable& variable : out_.variables) {
    for (const SymbolRef& ref : variable.refs) check(ref.symbol, variable.name);
  }
}

Result<Module> Linker::Run() {
  for (std::size_t i = 0; i < inputs_.size(); ++i) Collect(i);
  if (!errors_.empty()) return Fail("{}", errors_);
  for (const auto& [name, symbol] : symbols_) taken_.insert(name);
  for (std::size_t i = 0; i < inputs_.size(); ++i) RenameInternals(i);
  for (std::size_t i = 0; i < inputs_.size(); ++i) Move(i);
  for (std::size_t i = 0; i < inputs_.size(); ++i) MoveAliases(i);
  CheckReferences();
  if (!errors_.empty()) return Fail("{}", errors_);

  for (LinkInput& input : inputs_) {
    Module& module = input.module;
    const auto version = std::pair(module.version_major, module.version_minor);
    if (version > std::pair(out_.version_major, out_.version_minor)) {
      out_.version_major = module.version_major;
      out_.version_minor = module.version_minor;
    }
    // Longer first: sm_100 is above sm_90, and sm_90a above sm_90.
    if (std::pair(module.target.size(), module.target) >
        std::pair(out_.target.size(), out_.target)) {
      out_.target = module.target;
      out_.target_options = module.target_options;
    }
    out_.address_size = module.address_size;
    (out_.text == nullptr ? out_.text : out_.more_texts.emplace_back()) = std::move(module.text);
    for (auto& text : module.more_texts) out_.more_texts.push_back(std::move(text));
    for (auto& owned : module.owned) out_.owned.push_back(std::move(owned));
  }
  return std::move(out_);
}

}  // namespace

Result<Module> Link(std::vector<LinkInput> inputs,
                    const std::function<bool(std::string_view)>& provided) {
  if (inputs.empty()) return Fail("nothing to link");
  if (inputs.size() > kMaxLinkInputs) return Fail("more than {} files to link", kMaxLinkInputs);
  return Linker(std::move(inputs), provided).Run();
}

}  // namespace allranks::ptx
