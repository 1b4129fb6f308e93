// The parser's state, shared by its four sources: parser.cpp (module), parse_variable.cpp
// (declarations and initialisers), parse_body.cpp (function bodies, scopes and labels) and
// parse_operand.cpp. Not for use outside this folder.
//
// Every Parse... method returns false after a failure, which Error() has written down; callers only
// pass the false on. Recursion is bounded by kMaxNesting and kMaxScopeDepth (scopes are a list, not
// recursion).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ptx/debug_info.h"
#include "ptx/lexer.h"
#include "ptx/module.h"
#include "ptx/outline.h"
#include "ptx/parser.h"

namespace allranks::ptx {

// In fat binaries a text is padded with zeros.
inline std::string WithoutPadding(std::string text) {
  text.erase(text.find_last_not_of('\0') + 1);
  return text;
}

class Parser final : public BodyReader, public std::enable_shared_from_this<Parser> {
 public:
  Parser(std::string text, Bodies bodies);
  Parser(Outline outline, std::function<Result<std::string>()> whole);
  Result<Module> Run();
  Result<Outline> MakeOutline();

  Result<void> Read(Module* module, Function* function) override;
  void SetLinked(std::int32_t first_file, std::int32_t first_site, const Renames& renames) override;

 private:
  // What a name means at the current place of a function's body.
  struct Local {
    enum class Kind : std::uint8_t { kNone, kRegister, kVariable };
    Kind kind = Kind::kNone;
    int depth = 0;
    std::int32_t first = -1;  // register index
    std::uint32_t count = 0;  // of a range
    std::string_view name;    // unique name of a variable
  };
  using Locals = std::unordered_map<std::string_view, Local>;

  // A name used before its label was seen; settled when the scope ends that declares it.
  struct Pending {
    std::string_view name;
    std::uint32_t line = 0;
    std::uint32_t instruction = 0;  // operand `index` of it, or, with `list`, entry of that list
    std::uint32_t index = 0;
    std::vector<std::string_view>* list = nullptr;
    bool branch = false;  // must be a place in the code
  };

  struct LabelName {
    std::string_view unique;
    bool in_code = false;
  };

  struct Scope {
    std::size_t first_undo = 0;
    std::size_t first_pending = 0;
    std::unordered_map<std::string_view, LabelName> labels;
  };

  struct Undo {
    Locals* table;
    std::string_view name;
    Local before;
  };

  // All that lives as long as one function's body.
  struct Body {
    Locals names;              // single registers and variables
    Locals ranges;             // register ranges, by prefix
    bool digit_names = false;  // some single register's name ends with a digit
    std::vector<Undo> undo;
    std::vector<Scope> scopes;
    std::vector<Pending> pending;
    std::unordered_map<std::string_view, std::uint32_t> used;  // unique names and repetitions
  };

  struct Linkage {
    bool is_extern = false, is_visible = false, is_weak = false, is_common = false;
  };

  // Fails because of what comes next in the text.
  template <class... Args>
  bool Error(fmt::format_string<Args...> format, Args&&... args) {
    const std::string_view next = lexer_.Near();
    return ErrorAt(lexer_.line(), fmt::format(format, std::forward<Args>(args)...), next);
  }
  // Fails because of the token just read.
  template <class... Args>
  bool Reject(fmt::format_string<Args...> format, Args&&... args) {
    return ErrorAt(lexer_.last_line(), fmt::format(format, std::forward<Args>(args)...),
                   lexer_.last());
  }
  bool ErrorAt(std::uint32_t line, std::string_view what, std::string_view near);

  // Small pieces (parser.cpp).
  bool Expect(char c);
  bool ParseNumber(Number* number);
  bool ParseUnsigned(std::uint64_t most, std::uint64_t* value);
  bool ParseU32(std::uint32_t* value);
  bool SkipParentheses();

  // Module (parser.cpp).
  bool ParseModule();
  bool ParseModuleDirective(std::string_view word);
  bool ParseLinked(Linkage linkage, std::string_view word);
  bool ParseTarget();
  bool ParseFile();
  bool ParseLoc();
  bool ParseSection();
  bool ParseDebugStrings();
  bool ParseAlias();
  bool ParsePragma();
  bool ParseFunction(const Linkage& linkage, bool is_entry);
  bool ParseFunctionDirectives(Function* function);
  bool ParseDimensions(std::uint32_t (&dimensions)[3]);
  bool SkipBody();
  bool AddFunction(Function function);
  // Of outlines (outline.cpp).
  bool SkipOutlined();
  void TellOutlined(const Module& module, Function* function) const;
  Result<void> ReadWhole(Module* module);
  bool Finish();

  // Declarations (parse_variable.cpp).
  bool ParseVariables(Space space, const Linkage& linkage, std::vector<Variable>* out);
  bool ParseParameterList(std::vector<Variable>* out);
  bool ParseTypeWords(Variable* variable);
  bool ParseDeclarator(Variable* variable, std::vector<std::uint64_t>* dimensions);
  bool ParseInitialiser(Variable* variable, const std::vector<std::uint64_t>& dimensions);
  bool ParseInitialiserList(Variable* variable, const std::vector<std::uint64_t>& strides,
                            std::size_t level, std::uint64_t at, std::uint64_t end);
  bool ParseInitialiserValue(Variable* variable, std::uint64_t at);
  bool StoreBytes(Variable* variable, std::uint64_t at, std::uint64_t bits, int size);
  bool AddModuleVariable(Variable variable);

  // Function bodies (parse_body.cpp).
  bool ParseBody(Function* function);
  bool ParseStatement(bool* done);
  bool ParseBodyDirective(std::string_view word);
  bool ParseRegisters();
  bool AddRegisters(std::string_view name, Type type, std::int64_t count);
  bool ParseLabel(std::string_view name);
  bool ParseTargets(std::string_view label, std::string_view word);
  bool ParsePrototype(std::string_view label);
  bool ParseInstruction(std::string_view opcode);
  bool ParseGuard(Instruction* instruction);
  bool OpenScope();
  bool CloseScope();
  bool Settle(const Pending& pending, const LabelName& label);
  bool DefineLabel(std::string_view name, bool in_code, std::string_view* unique);
  bool DeclareLocal(Variable* variable);
  void Bind(Locals* table, std::string_view name, Local local);
  std::string_view UniqueName(std::string_view name);
  std::int32_t FindRegister(std::string_view name) const;

  // Operands (parse_operand.cpp).
  bool ParseOperand(Operand* operand, int nesting);
  bool ParsePrimary(Operand* operand, int nesting);
  bool ParseElements(char close, Operand* operand, int nesting);
  bool ParseAddress(Operand* operand, int nesting);
  bool ParseName(Operand* operand, int nesting, bool offset);
  bool ParseOffset(std::uint64_t* offset, int nesting);
  bool ParseExpression(int precedence, int nesting, std::uint64_t* value);
  bool ParseExpressionTerm(int nesting, std::uint64_t* value);
  bool CountOperand();

  std::shared_ptr<const std::string> text_;
  std::size_t text_bytes_;  // of an outline: of the whole text
  Lexer lexer_;
  Bodies bodies_;
  Module module_;
  DebugInfo debug_;
  std::string error_;
  bool failed_ = false;

  // Totals that the limits of parser.h hold for.
  std::size_t registers_ = 0;
  std::size_t instructions_ = 0;
  std::size_t operands_ = 0;
  std::uint64_t initialiser_bytes_ = 0;

  // Bodies that are left for later, and how the module that has the functions by then counts files
  // and inlined calls.
  struct Later {
    Lexer::Mark begin;
    Lexer::Mark end;
  };
  std::vector<Later> later_;
  std::optional<Outline> outline_;              // without its text, which is text_
  std::function<Result<std::string>()> whole_;  // empty once the whole text has been read
  std::int32_t first_file_ = 0;
  std::vector<std::int32_t> site_of_;
  Renames renames_;

  // The function and the instruction at work.
  Function* function_ = nullptr;
  Body body_;
  SourceLoc loc_;
  std::size_t instruction_operands_ = 0;
  bool in_call_ = false;
  bool in_branch_ = false;
  bool in_brx_ = false;
  std::vector<std::string_view> modifiers_;  // scratch: one allocation of the right size each
  std::vector<Operand> operand_scratch_;
};

}  // namespace allranks::ptx
