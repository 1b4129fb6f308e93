// Function bodies: statements, scopes, registers and labels.
//
// Names are bound as they are declared. A scope that ends takes its bindings back through an undo
// list, so a look-up is one search whatever the depth. Labels are different: they may be used
// before they are seen, so uses wait in `pending` and are settled when the scope that declares the
// label ends; what stays open moves on to the scope around it.
#include <algorithm>
#include <charconv>
#include <iterator>

#include "ptx/parser.h"
#include "ptx/parser_impl.h"

namespace allranks::ptx {
namespace {

Space LocalSpace(std::string_view word) {
  if (word == "param") return Space::kParam;
  if (word == "shared") return Space::kShared;
  if (word == "local") return Space::kLocal;
  if (word == "global") return Space::kGlobal;
  if (word == "const") return Space::kConst;
  return Space::kNone;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool Parser::ParseBody(Function* function) {
  function_ = function;
  body_ = Body();
  loc_ = SourceLoc();
  debug_.BeginFunction();
  if (!Expect('{')) return false;
  // Parameters are in a scope of their own around the body.
  body_.scopes.emplace_back();
  for (std::vector<Variable>* list : {&function->results, &function->params}) {
    for (Variable& variable : *list) {
      if (variable.name == "_") continue;
      if (variable.space == Space::kReg) {
        if (!AddRegisters(variable.name, variable.type, -1)) return false;
      } else {
        const std::string_view name = UniqueName(variable.name);
        if (name != variable.name)
          return Reject("parameter {} has no name of its own", variable.name);
        Local local;
        local.kind = Local::Kind::kVariable;
        local.name = name;
        Bind(&body_.names, variable.name, local);
      }
    }
  }
  if (!OpenScope()) return false;
  bool done = false;
  while (!done) {
    if (!ParseStatement(&done)) return false;
  }
  if (!CloseScope()) return false;
  if (!body_.pending.empty()) {
    const Pending& open = body_.pending.front();
    return ErrorAt(open.line, open.branch ? "branch to an unknown label" : "undeclared name",
                   open.name);
  }
  function_ = nullptr;
  return true;
}

bool Parser::ParseStatement(bool* done) {
  std::string_view word;
  if (lexer_.TryIdentifier(&word)) {
    return lexer_.TryChar(':') ? ParseLabel(word) : ParseInstruction(word);
  }
  if (lexer_.TryDotted(&word)) return ParseBodyDirective(word);
  switch (lexer_.Peek()) {
    case '@':
      return ParseInstruction({});
    case '{':
      return lexer_.TryChar('{') && OpenScope();
    case '}':
      lexer_.TryChar('}');
      if (body_.scopes.size() == 2) {
        *done = true;
        return true;
      }
      return CloseScope();
    case ';':
      return lexer_.TryChar(';');
    default:
      return lexer_.AtEnd() ? Error("the text ends within a function")
                            : Error("expected a statement");
  }
}

bool Parser::ParseBodyDirective(std::string_view word) {
  if (word == "loc") return ParseLoc();
  if (word == "reg") return ParseRegisters();
  if (word == "pragma") return ParsePragma();
  if (word == "file") return ParseFile();
  const Space space = LocalSpace(word);
  if (space == Space::kNone) return Reject("unknown directive in a function");
  std::vector<Variable> variables;
  if (!ParseVariables(space, Linkage(), &variables)) return false;
  for (Variable& variable : variables) {
    if (!DeclareLocal(&variable)) return false;
    function_->variables.push_back(std::move(variable));
  }
  return true;
}

bool Parser::DeclareLocal(Variable* variable) {
  const auto known = body_.names.find(variable->name);
  const int depth = static_cast<int>(body_.scopes.size());
  if (known != body_.names.end() && known->second.depth == depth) {
    return ErrorAt(lexer_.last_line(), "declared twice in one scope", variable->name);
  }
  Local local;
  local.kind = Local::Kind::kVariable;
  local.name = UniqueName(variable->name);
  Bind(&body_.names, variable->name, local);
  variable->name = local.name;
  return true;
}

// .reg type name, range<count>, ...;
bool Parser::ParseRegisters() {
  std::string_view word;
  if (!lexer_.TryDotted(&word)) return Error("expected a type");
  const Type type = TypeFromWord(word);
  if (type == Type::kNone || type == Type::kOther) {
    return Reject("registers of type .{} are not supported", word);
  }
  do {
    std::string_view name;
    if (!lexer_.TryIdentifier(&name)) return Error("expected a register's name");
    std::uint64_t count = 0;
    const bool range = lexer_.TryChar('<');
    if (range && (!ParseUnsigned(kMaxRegistersPerFunction, &count) || !Expect('>'))) return false;
    if (!AddRegisters(name, type, range ? static_cast<std::int64_t>(count) : -1)) return false;
  } while (lexer_.TryChar(','));
  return Expect(';');
}

// `count` -1: a single register.
bool Parser::AddRegisters(std::string_view name, Type type, std::int64_t count) {
  const std::size_t added = count < 0 ? 1 : static_cast<std::size_t>(count);
  registers_ += added;
  if (function_->registers.size() + added > kMaxRegistersPerFunction) {
    return Reject("more than {} registers in a function", kMaxRegistersPerFunction);
  }
  if (registers_ > text_bytes_ + kSpareRegisters) {
    return Reject("far more registers declared than the text can use");
  }
  Locals* table = count < 0 ? &body_.names : &body_.ranges;
  const auto known = table->find(name);
  if (known != table->end() && known->second.depth == static_cast<int>(body_.scopes.size())) {
    return ErrorAt(lexer_.last_line(), "register declared twice in one scope", name);
  }
  Local local;
  local.kind = Local::Kind::kRegister;
  local.first = static_cast<std::int32_t>(function_->registers.size());
  local.count = static_cast<std::uint32_t>(added);
  Bind(table, name, local);
  if (count < 0) {
    if (IsDigit(name.back())) body_.digit_names = true;
    function_->registers.push_back({name, -1, type});
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      function_->registers.push_back({name, static_cast<std::int32_t>(i), type});
    }
  }
  return true;
}

void Parser::Bind(Locals* table, std::string_view name, Local local) {
  local.depth = static_cast<int>(body_.scopes.size());
  Local& slot = (*table)[name];
  body_.undo.push_back({table, name, slot});
  slot = local;
}

// -1 if `name` is not a register here.
std::int32_t Parser::FindRegister(std::string_view name) const {
  std::size_t digits = name.size();
  while (digits > 1 && IsDigit(name[digits - 1])) --digits;
  const bool numbered = digits < name.size();
  std::int32_t in_range = -1;
  int range_depth = -1;
  // A leading zero would be another spelling of a number: %r07 is not %r7.
  if (numbered && (name[digits] != '0' || digits + 1 == name.size())) {
    const auto range = body_.ranges.find(name.substr(0, digits));
    if (range != body_.ranges.end() && range->second.kind == Local::Kind::kRegister) {
      std::uint32_t number = 0;
      const char* end = name.data() + name.size();
      const std::from_chars_result result = std::from_chars(name.data() + digits, end, number);
      if (result.ec == std::errc() && number < range->second.count) {
        in_range = range->second.first + static_cast<std::int32_t>(number);
        range_depth = range->second.depth;
      }
    }
    if (!body_.digit_names) return in_range;
  }
  const auto single = body_.names.find(name);
  if (single != body_.names.end() && single->second.kind == Local::Kind::kRegister &&
      single->second.depth > range_depth) {
    return single->second.first;
  }
  return in_range;
}

bool Parser::OpenScope() {
  if (body_.scopes.size() > kMaxScopeDepth) return Reject("scopes nested too deeply");
  Scope& scope = body_.scopes.emplace_back();
  scope.first_undo = body_.undo.size();
  scope.first_pending = body_.pending.size();
  return true;
}

bool Parser::CloseScope() {
  const Scope& scope = body_.scopes.back();
  std::size_t kept = scope.first_pending;
  for (std::size_t i = scope.first_pending; i < body_.pending.size(); ++i) {
    const auto label = scope.labels.find(body_.pending[i].name);
    if (label == scope.labels.end()) {
      body_.pending[kept++] = body_.pending[i];
    } else if (!Settle(body_.pending[i], label->second)) {
      return false;
    }
  }
  body_.pending.resize(kept);
  while (body_.undo.size() > scope.first_undo) {
    const Undo& undo = body_.undo.back();
    if (undo.before.kind == Local::Kind::kNone) {
      undo.table->erase(undo.name);
    } else {
      (*undo.table)[undo.name] = undo.before;
    }
    body_.undo.pop_back();
  }
  body_.scopes.pop_back();
  return true;
}

bool Parser::Settle(const Pending& pending, const LabelName& label) {
  if (pending.branch && !label.in_code) {
    return ErrorAt(pending.line, "branch to something that is no label", pending.name);
  }
  if (pending.list != nullptr) {
    (*pending.list)[pending.index] = label.unique;
  } else {
    function_->code[pending.instruction].operands[pending.index].name = label.unique;
  }
  return true;
}

// After "name:". The name is one of a place in the code, or of the list or prototype that follows.
bool Parser::ParseLabel(std::string_view name) {
  std::string_view unique;
  for (const std::string_view word : {"branchtargets", "calltargets", "callprototype"}) {
    if (!lexer_.TryWord(word)) continue;
    if (!DefineLabel(name, false, &unique)) return false;
    return word == "callprototype" ? ParsePrototype(unique) : ParseTargets(unique, word);
  }
  if (!DefineLabel(name, true, &unique)) return false;
  function_->labels.emplace(unique, static_cast<std::uint32_t>(function_->code.size()));
  return true;
}

bool Parser::DefineLabel(std::string_view name, bool in_code, std::string_view* unique) {
  Scope& scope = body_.scopes.back();
  if (scope.labels.contains(name)) {
    return ErrorAt(lexer_.last_line(), "label defined twice", name);
  }
  *unique = UniqueName(name);
  scope.labels.emplace(name, LabelName{*unique, in_code});
  return true;
}

// A name of the module counts as used: a look-up by name must not find the local one for it.
std::string_view Parser::UniqueName(std::string_view name) {
  const auto [found, added] = body_.used.emplace(name, 1);
  if (added && !module_.variable_index.contains(name) && !module_.function_index.contains(name)) {
    return name;
  }
  auto made = std::make_unique<std::string>(fmt::format("{}#{}", name, ++found->second));
  module_.owned.push_back(std::move(made));
  return *module_.owned.back();
}

// After ".branchtargets" or ".calltargets": names up to ';'.
bool Parser::ParseTargets(std::string_view label, std::string_view word) {
  const bool branch = word == "branchtargets";
  std::vector<std::string_view>& list = function_->target_lists[label];
  do {
    std::string_view name;
    const std::uint32_t line = lexer_.line();
    if (!lexer_.TryIdentifier(&name)) return Error("expected a name");
    if (branch) {
      Pending pending;
      pending.name = name;
      pending.line = line;
      pending.index = static_cast<std::uint32_t>(list.size());
      pending.list = &list;
      pending.branch = true;
      body_.pending.push_back(pending);
    } else if (!module_.function_index.contains(name)) {
      return Reject("unknown function in .calltargets");
    }
    list.push_back(name);
    if (++operands_ > kMaxOperands) return Reject("too many operands in the module");
  } while (lexer_.TryChar(','));
  return Expect(';');
}

// After ".callprototype": [(results)] _ [(parameters)] directives;
bool Parser::ParsePrototype(std::string_view label) {
  CallPrototype& prototype = function_->prototypes[label];
  if (lexer_.Peek() == '(' && !ParseParameterList(&prototype.results)) return false;
  std::string_view name;
  if (!lexer_.TryIdentifier(&name) || name != "_") return Error("expected '_'");
  if (lexer_.Peek() == '(' && !ParseParameterList(&prototype.params)) return false;
  Function directives;
  if (!ParseFunctionDirectives(&directives)) return false;
  prototype.noreturn = directives.noreturn;
  return Expect(';');
}

bool Parser::ParseGuard(Instruction* instruction) {
  if (!lexer_.TryChar('@')) return true;
  instruction->guard_negated = lexer_.TryChar('!');
  std::string_view name;
  if (!lexer_.TryIdentifier(&name)) return Error("expected a predicate");
  instruction->guard = FindRegister(name);
  if (instruction->guard < 0) return Reject("undeclared predicate");
  const Register& reg = function_->registers[static_cast<std::size_t>(instruction->guard)];
  if (reg.type != Type::kPred) return Reject("the guard is no predicate");
  return true;
}

// `opcode` is empty if the statement starts with a guard.
bool Parser::ParseInstruction(std::string_view opcode) {
  if (++instructions_ > kMaxInstructions) return Reject("too many instructions in the module");
  Instruction instruction;
  instruction.text_line = lexer_.line();
  instruction.loc = loc_;
  if (opcode.empty()) {
    if (!ParseGuard(&instruction)) return false;
    if (!lexer_.TryIdentifier(&opcode)) return Error("expected an instruction");
  }
  if (opcode[0] == '%' || opcode[0] == '$') return Reject("this is no instruction");
  instruction.opcode = opcode;
  in_call_ = opcode == "call";
  in_brx_ = opcode == "brx";
  in_branch_ = opcode == "bra" || in_brx_;
  instruction_operands_ = 0;
  modifiers_.clear();
  operand_scratch_.clear();

  std::string_view modifier;
  while (lexer_.TryDotted(&modifier)) {
    if (modifiers_.size() == kMaxModifiers) return Reject("too many modifiers");
    modifiers_.push_back(modifier);
  }
  if (!lexer_.TryChar(';')) {
    do {
      Operand operand;
      if (!ParseOperand(&operand, 0)) return false;
      operand_scratch_.push_back(std::move(operand));
    } while (lexer_.TryChar(','));
    if (!Expect(';')) return false;
  }
  instruction.modifiers.assign(modifiers_.begin(), modifiers_.end());
  instruction.operands.assign(std::make_move_iterator(operand_scratch_.begin()),
                              std::make_move_iterator(operand_scratch_.end()));
  function_->code.push_back(std::move(instruction));
  return true;
}

}  // namespace allranks::ptx
