// Module scope of the parser: directives, function headers, debug sections, and the final checks.
// The parts of functions are in parse_body.cpp, parse_operand.cpp and parse_variable.cpp.
#include "ptx/parser.h"

#include <algorithm>
#include <limits>

#include "ptx/parser_impl.h"

namespace allranks::ptx {

Result<Module> Parse(std::string text, Bodies bodies) {
  if (text.size() > kMaxTextBytes) {
    return Fail("ptx:1: the text has {} bytes, the limit is {}", text.size(), kMaxTextBytes);
  }
  return std::make_shared<Parser>(WithoutPadding(std::move(text)), bodies)->Run();
}

Parser::Parser(std::string text, Bodies bodies)
    : text_(std::make_shared<const std::string>(std::move(text))),
      text_bytes_(text_->size()),
      lexer_(*text_),
      bodies_(bodies),
      debug_(&module_) {
  module_.text = text_;
}

Result<Module> Parser::Run() {
  if (!ParseModule() || !Finish()) return Fail("{}", error_);
  if (later_.empty()) return std::move(module_);
  // What bodies need to be read stays here: the names of the module, and inlined calls.
  Module module = std::move(module_);
  module_ = Module();
  module_.function_index = module.function_index;
  module_.variable_index = module.variable_index;
  module_.inline_sites = module.inline_sites;
  for (std::size_t i = 0; i < module.inline_sites.size(); ++i)
    site_of_.push_back(static_cast<std::int32_t>(i));
  for (Function& function : module.functions) {
    if (!function.has_body) continue;
    function.reader = shared_from_this();
    if (outline_) {
      TellOutlined(module, &function);
    } else {
      const Later& later = later_[function.body];
      function.body_text = {later.begin.at,
                            static_cast<std::size_t>(later.end.at - later.begin.at)};
    }
  }
  return module;
}

void Parser::SetLinked(std::int32_t first_file, std::int32_t first_site, const Renames& renames) {
  first_file_ = first_file;
  for (std::int32_t& site : site_of_) site += first_site;
  renames_ = renames;
}

Result<void> Parser::Read(Module* module, Function* function) {
  if (whole_) {
    if (auto read = ReadWhole(module); !read) return read;
  }
  lexer_.Return(later_[function->body].begin);
  failed_ = false;
  const bool good = ParseBody(function);
  // The names that were made belong to whoever has the function.
  for (std::unique_ptr<std::string>& name : module_.owned) module->owned.push_back(std::move(name));
  module_.owned.clear();
  if (!good) {
    function->registers.clear();
    function->variables.clear();
    function->code.clear();
    function->labels.clear();
    function->target_lists.clear();
    function->prototypes.clear();
    return Fail("{}", error_);
  }
  debug_.FinishLater(site_of_.size(), &function->code);
  const auto shift = [&](SourceLoc* loc) {
    if (loc->file >= 0) loc->file += first_file_;
    if (loc->inlined_at >= 0) loc->inlined_at = site_of_[static_cast<std::size_t>(loc->inlined_at)];
  };
  for (std::size_t i = site_of_.size(); i < module_.inline_sites.size(); ++i) {
    InlineSite site = module_.inline_sites[i];
    shift(&site.call);
    site_of_.push_back(static_cast<std::int32_t>(module->inline_sites.size()));
    module->inline_sites.push_back(site);
  }
  for (Instruction& in : function->code) shift(&in.loc);
  Rename(renames_, function);
  return {};
}

bool Parser::ErrorAt(std::uint32_t line, std::string_view what, std::string_view near) {
  if (failed_) return false;
  failed_ = true;
  std::string token(near);
  for (char& c : token) {
    if (c < ' ' || c > '~') c = '?';
  }
  error_ = fmt::format("ptx:{}: {} near '{}'", line, what, token);
  return false;
}

bool Parser::Expect(char c) {
  if (lexer_.TryChar(c)) return true;
  return Error("expected '{}'", c);
}

bool Parser::ParseNumber(Number* number) {
  bool bad = false;
  if (lexer_.TryNumber(number, &bad)) return true;
  return bad ? Error("malformed number") : Error("expected a number");
}

bool Parser::ParseUnsigned(std::uint64_t most, std::uint64_t* value) {
  Number number;
  if (!ParseNumber(&number)) return false;
  if (number.kind != Number::Kind::kInt) return Error("expected an integer");
  if (number.bits > most) return Reject("number above the limit {}", most);
  *value = number.bits;
  return true;
}

bool Parser::ParseU32(std::uint32_t* value) {
  std::uint64_t wide = 0;
  // Lines and the like end up in signed 32-bit fields.
  if (!ParseUnsigned(std::numeric_limits<std::int32_t>::max(), &wide)) return false;
  *value = static_cast<std::uint32_t>(wide);
  return true;
}

// "( ... )", whatever is inside; for attributes this project has no use for.
bool Parser::SkipParentheses() {
  if (!Expect('(')) return false;
  for (int depth = 1; depth > 0;) {
    if (lexer_.AtEnd()) return Error("'(' without ')'");
    std::string_view word;
    Number number;
    bool bad = false;
    if (lexer_.TryChar('(')) {
      ++depth;
    } else if (lexer_.TryChar(')')) {
      --depth;
    } else if (!lexer_.TryDotted(&word) && !lexer_.TryIdentifier(&word) &&
               !lexer_.TryNumber(&number, &bad) && !lexer_.TryChar(',')) {
      return Error("unexpected character in an attribute");
    }
  }
  return true;
}

bool Parser::ParseModule() {
  std::string_view word;
  if (!lexer_.TryWord("version")) return Error("expected .version");
  if (!lexer_.TryVersion(&module_.version_major, &module_.version_minor)) {
    return Error("malformed .version");
  }
  if (!lexer_.TryWord("target")) return Error("expected .target");
  if (!ParseTarget()) return false;
  while (!lexer_.AtEnd()) {
    if (lexer_.TryChar(';')) continue;
    if (!lexer_.TryDotted(&word)) return Error("expected a directive");
    if (!ParseModuleDirective(word)) return false;
  }
  return true;
}

bool Parser::ParseModuleDirective(std::string_view word) {
  if (word == "file") return ParseFile();
  if (word == "section") return ParseSection();
  if (word == "alias") return ParseAlias();
  if (word == "pragma") return ParsePragma();
  if (word == "loc") return ParseLoc();
  if (word == "address_size") {
    std::uint64_t bits = 0;
    if (!ParseUnsigned(64, &bits)) return false;
    if (bits != 64) return Reject("only .address_size 64 is supported");
    return true;
  }
  if (word == "target") return ParseTarget();
  Linkage linkage;
  for (;;) {
    if (word == "extern") {
      linkage.is_extern = true;
    } else if (word == "visible") {
      linkage.is_visible = true;
    } else if (word == "weak") {
      linkage.is_weak = true;
    } else if (word == "common") {
      linkage.is_common = true;
    } else {
      return ParseLinked(linkage, word);
    }
    if (!lexer_.TryDotted(&word)) return Error("expected a declaration");
  }
}

bool Parser::ParseLinked(Linkage linkage, std::string_view word) {
  if (word == "entry" || word == "func") return ParseFunction(linkage, word == "entry");
  Space space = Space::kNone;
  if (word == "global") space = Space::kGlobal;
  if (word == "const") space = Space::kConst;
  if (word == "shared") space = Space::kShared;
  if (word == "local") space = Space::kLocal;
  if (space == Space::kNone) return Reject("unknown directive");
  std::vector<Variable> variables;
  if (!ParseVariables(space, linkage, &variables)) return false;
  for (Variable& variable : variables) {
    if (!AddModuleVariable(std::move(variable))) return false;
  }
  return true;
}

bool Parser::ParseTarget() {
  std::string_view word;
  do {
    if (!lexer_.TryIdentifier(&word)) return Error("expected a target");
    if (module_.target.empty() && word.starts_with("sm_")) {
      module_.target = word;
    } else {
      module_.target_options.push_back(word);
    }
  } while (lexer_.TryChar(','));
  if (module_.target.empty()) return Reject("no sm_ in .target");
  return true;
}

// .file N "name" [, timestamp, size]
bool Parser::ParseFile() {
  std::uint64_t number = 0;
  std::string_view name;
  if (!ParseUnsigned(kMaxFiles, &number)) return false;
  if (number == 0) return Reject("file numbers start at 1");
  if (!lexer_.TryString(&name)) return Error("expected a file name");
  while (lexer_.TryChar(',')) {
    std::uint64_t ignored = 0;
    if (!ParseUnsigned(std::numeric_limits<std::uint64_t>::max(), &ignored)) return false;
  }
  debug_.AddFile(static_cast<std::uint32_t>(number), name);
  return true;
}

// .loc file line column [, function_name label [+ offset], inlined_at file line column]
bool Parser::ParseLoc() {
  LocDirective loc;
  if (!ParseU32(&loc.file) || !ParseU32(&loc.line) || !ParseU32(&loc.column)) return false;
  while (lexer_.TryChar(',')) {
    std::string_view word;
    if (!lexer_.TryIdentifier(&word)) return Error("expected an attribute of .loc");
    if (word == "function_name") {
      if (!lexer_.TryIdentifier(&loc.function_label)) return Error("expected a label");
      std::uint32_t ignored = 0;
      if (lexer_.TryChar('+') && !ParseU32(&ignored)) return false;
    } else if (word == "inlined_at") {
      loc.inlined = true;
      if (!ParseU32(&loc.call_file) || !ParseU32(&loc.call_line) || !ParseU32(&loc.call_column)) {
        return false;
      }
    } else {
      return Reject("unknown attribute of .loc");
    }
  }
  if (loc.file > kMaxFiles || loc.call_file > kMaxFiles) return Reject("file number too large");
  loc_ = debug_.Enter(loc);
  return true;
}

// Debug sections are skipped, but for the names that .loc refers to.
bool Parser::ParseSection() {
  std::string_view name;
  if (!lexer_.TryDotted(&name)) return Error("expected a section's name");
  if (!Expect('{')) return false;
  if (name == "debug_str") return ParseDebugStrings();
  if (!lexer_.SkipPast('}')) return Error("section .{} without end", name);
  return true;
}

bool Parser::ParseDebugStrings() {
  while (!lexer_.TryChar('}')) {
    std::string_view word;
    if (lexer_.TryIdentifier(&word)) {
      if (!Expect(':')) return false;
      debug_.AddLabel(word);
      continue;
    }
    if (!lexer_.TryDotted(&word) || word != "b8") return Error("expected .b8 in .debug_str");
    do {
      std::uint64_t byte = 0;
      if (!ParseUnsigned(255, &byte)) return false;
      debug_.AddByte(static_cast<std::uint8_t>(byte));
    } while (lexer_.TryChar(','));
  }
  return true;
}

bool Parser::ParseAlias() {
  Alias alias;
  if (!lexer_.TryIdentifier(&alias.name)) return Error("expected an alias");
  if (!Expect(',')) return false;
  if (!lexer_.TryIdentifier(&alias.target)) return Error("expected a function");
  module_.aliases.push_back(alias);
  return Expect(';');
}

bool Parser::ParsePragma() {
  std::string_view text;
  do {
    if (!lexer_.TryString(&text)) return Error("expected a string");
  } while (lexer_.TryChar(','));
  return Expect(';');
}

bool Parser::ParseFunction(const Linkage& linkage, bool is_entry) {
  Function function;
  function.is_entry = is_entry;
  function.is_extern = linkage.is_extern;
  function.is_visible = linkage.is_visible;
  function.is_weak = linkage.is_weak;
  function.text_line = lexer_.line();
  std::string_view word;
  while (lexer_.TryDotted(&word)) {
    if (word != "attribute") return Reject("unknown directive before a function's name");
    if (!SkipParentheses()) return false;
  }
  if (lexer_.Peek() == '(' && !ParseParameterList(&function.results)) return false;
  if (!lexer_.TryIdentifier(&function.name)) return Error("expected a function's name");
  if (lexer_.Peek() == '(' && !ParseParameterList(&function.params)) return false;
  if (!ParseFunctionDirectives(&function)) return false;
  if (lexer_.TryChar(';')) return AddFunction(std::move(function));

  function.has_body = true;
  // Known by name before its body is read: it may call itself.
  Function header;
  header.name = function.name;
  header.is_entry = is_entry;
  header.is_visible = function.is_visible;
  header.is_weak = function.is_weak;
  header.has_body = true;
  if (!AddFunction(std::move(header))) return false;
  const std::uint32_t position = module_.function_index.at(function.name);
  if (bodies_ == Bodies::kLater) {
    function.body = static_cast<std::uint32_t>(later_.size());
    if (!SkipBody()) return false;
  } else if (!ParseBody(&function)) {
    return false;
  }
  module_.functions[position] = std::move(function);
  return true;
}

bool Parser::SkipBody() {
  if (outline_) return SkipOutlined();
  lexer_.Peek();  // to the brace
  Later later;
  later.begin = lexer_.mark();
  if (lexer_.Peek() != '{' || !lexer_.SkipBraces()) return Error("expected a body");
  later.end = lexer_.mark();
  later_.push_back(later);
  return true;
}

bool Parser::ParseDimensions(std::uint32_t (&dimensions)[3]) {
  for (std::uint32_t& dimension : dimensions) dimension = 1;
  for (std::uint32_t& dimension : dimensions) {
    if (!ParseU32(&dimension)) return false;
    if (!lexer_.TryChar(',')) return true;
  }
  return Error("more than three dimensions");
}

bool Parser::ParseFunctionDirectives(Function* function) {
  EntryLimits& limits = function->limits;
  std::string_view word;
  while (lexer_.TryDotted(&word)) {
    std::uint32_t ignored = 0;
    bool good = true;
    if (word == "maxntid") {
      good = ParseDimensions(limits.max_threads);
    } else if (word == "reqntid") {
      good = ParseDimensions(limits.required_threads);
    } else if (word == "reqnctapercluster") {
      good = ParseDimensions(limits.cluster);
    } else if (word == "minnctapersm") {
      good = ParseU32(&limits.min_ctas_per_sm);
    } else if (word == "maxnreg") {
      good = ParseU32(&limits.max_registers);
    } else if (word == "maxclusterrank") {
      good = ParseU32(&limits.max_cluster_rank);
    } else if (word == "explicitcluster") {
      limits.explicit_cluster = true;
    } else if (word == "blocksareclusters") {
      limits.blocks_are_clusters = true;
    } else if (word == "noreturn") {
      function->noreturn = true;
    } else if (word == "maxnctapersm" || word == "abi_preserve" || word == "abi_preserve_control") {
      good = ParseU32(&ignored);
    } else if (word == "pragma") {
      good = ParsePragma();
    } else if (word == "attribute") {
      good = SkipParentheses();
    } else {
      return Reject("unknown directive of a function");
    }
    if (!good) return false;
  }
  return true;
}

bool Parser::AddFunction(Function function) {
  if (module_.variable_index.contains(function.name)) {
    return ErrorAt(lexer_.last_line(), "declared as a variable already", function.name);
  }
  const auto [found, added] = module_.function_index.emplace(
      function.name, static_cast<std::uint32_t>(module_.functions.size()));
  if (added) {
    module_.functions.push_back(std::move(function));
    return true;
  }
  Function& known = module_.functions[found->second];
  if (known.is_entry != function.is_entry) {
    return ErrorAt(lexer_.last_line(), "declared as .entry and as .func", function.name);
  }
  if (!function.has_body) return true;
  if (known.has_body) return ErrorAt(lexer_.last_line(), "function defined twice", function.name);
  known = std::move(function);
  return true;
}

bool Parser::Finish() {
  const auto end_error = [&](std::string_view what, std::string_view name) {
    return ErrorAt(lexer_.line(), what, name);
  };
  for (const Alias& alias : module_.aliases) {
    const auto target = module_.function_index.find(alias.target);
    if (target == module_.function_index.end()) {
      return end_error("alias of an unknown function", alias.target);
    }
    if (module_.variable_index.contains(alias.name)) {
      return end_error("an alias has the name of a variable", alias.name);
    }
    module_.function_index[alias.name] = target->second;
  }
  const auto known = [&](std::string_view name) {
    return module_.variable_index.contains(name) || module_.function_index.contains(name);
  };
  for (const Variable& variable : module_.variables) {
    for (const SymbolRef& ref : variable.refs) {
      if (!known(ref.symbol)) return end_error("undeclared name in an initialiser", ref.symbol);
    }
  }
  debug_.Finish();
  return true;
}

}  // namespace allranks::ptx
