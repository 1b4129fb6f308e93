// Operands of instructions, and constant expressions.
#include <algorithm>
#include <array>
#include <limits>

#include "ptx/parser.h"
#include "ptx/parser_impl.h"

namespace allranks::ptx {
namespace {

// Without %envreg and %pm, which are numbered. Sorted.
constexpr std::string_view kSpecialRegisters[] = {"%aggr_smem_size",
                                                  "%clock",
                                                  "%clock64",
                                                  "%clock_hi",
                                                  "%cluster_ctaid",
                                                  "%cluster_ctarank",
                                                  "%cluster_nctaid",
                                                  "%cluster_nctarank",
                                                  "%clusterid",
                                                  "%ctaid",
                                                  "%current_graph_exec",
                                                  "%dynamic_smem_size",
                                                  "%globaltimer",
                                                  "%globaltimer_hi",
                                                  "%globaltimer_lo",
                                                  "%gridid",
                                                  "%is_explicit_cluster",
                                                  "%laneid",
                                                  "%lanemask_eq",
                                                  "%lanemask_ge",
                                                  "%lanemask_gt",
                                                  "%lanemask_le",
                                                  "%lanemask_lt",
                                                  "%nclusterid",
                                                  "%nctaid",
                                                  "%nsmid",
                                                  "%ntid",
                                                  "%nwarpid",
                                                  "%reserved_smem_offset_0",
                                                  "%reserved_smem_offset_1",
                                                  "%reserved_smem_offset_begin",
                                                  "%reserved_smem_offset_cap",
                                                  "%reserved_smem_offset_end",
                                                  "%smid",
                                                  "%tid",
                                                  "%total_smem_size",
                                                  "%warpid"};

bool IsSpecial(std::string_view name) {
  if (std::binary_search(std::begin(kSpecialRegisters), std::end(kSpecialRegisters), name)) {
    return true;
  }
  std::string_view number;
  if (name.starts_with("%envreg")) {
    number = name.substr(7);
    if (number.size() == 2) return number >= "10" && number <= "31";
    return number.size() == 1 && number[0] >= '0' && number[0] <= '9';
  }
  if (name.starts_with("%pm")) {
    number = name.substr(3);
    if (number.ends_with("_64")) number.remove_suffix(3);
    return number.size() == 1 && number[0] >= '0' && number[0] <= '7';
  }
  return false;
}

struct Operator {
  std::string_view text;
  int precedence;
};

// Longer ones first, so that "<<" is not read as "<".
constexpr Operator kOperators[] = {{"<<", 8}, {">>", 8}, {"<=", 7}, {">=", 7}, {"==", 6},
                                   {"!=", 6}, {"&&", 2}, {"||", 1}, {"<", 7},  {">", 7},
                                   {"&", 5},  {"^", 4},  {"|", 3},  {"+", 9},  {"-", 9},
                                   {"*", 10}, {"/", 10}, {"%", 10}};

// False for a division that has no result.
bool Apply(std::string_view op, std::uint64_t a, std::uint64_t b, std::uint64_t* result) {
  const auto sa = static_cast<std::int64_t>(a);
  const auto sb = static_cast<std::int64_t>(b);
  if (op == "/" || op == "%") {
    if (b == 0) return false;
    // The one quotient that does not fit wraps around.
    if (sb == -1) {
      *result = op == "/" ? 0 - a : 0;
    } else {
      *result = static_cast<std::uint64_t>(op == "/" ? sa / sb : sa % sb);
    }
    return true;
  }
  if (op == "<<") *result = b < 64 ? a << b : 0;
  if (op == ">>") *result = static_cast<std::uint64_t>(sa >> std::min<std::uint64_t>(b, 63));
  if (op == "<=") *result = sa <= sb;
  if (op == ">=") *result = sa >= sb;
  if (op == "==") *result = a == b;
  if (op == "!=") *result = a != b;
  if (op == "&&") *result = a != 0 && b != 0;
  if (op == "||") *result = a != 0 || b != 0;
  if (op == "<") *result = sa < sb;
  if (op == ">") *result = sa > sb;
  if (op == "&") *result = a & b;
  if (op == "^") *result = a ^ b;
  if (op == "|") *result = a | b;
  if (op == "+") *result = a + b;
  if (op == "-") *result = a - b;
  if (op == "*") *result = a * b;
  return true;
}

}  // namespace

bool Parser::CountOperand() {
  if (++operands_ > kMaxOperands) return Reject("too many operands in the module");
  if (++instruction_operands_ > kMaxOperandsPerInstruction) return Reject("too many operands");
  return true;
}

bool Parser::ParseOperand(Operand* operand, int nesting) {
  if (!ParsePrimary(operand, nesting)) return false;
  if (nesting > 0 || !lexer_.TryChar('|')) return true;
  if (operand->kind == Operand::Kind::kSymbol) return Reject("'|' after a name");
  Operand pair;
  pair.kind = Operand::Kind::kPair;
  pair.elements.reserve(2);
  pair.elements.push_back(std::move(*operand));
  if (!ParsePrimary(&pair.elements.emplace_back(), nesting + 1)) return false;
  *operand = std::move(pair);
  return CountOperand();
}

bool Parser::ParsePrimary(Operand* operand, int nesting) {
  if (nesting > kMaxNesting) return Reject("operand nested too deeply");
  if (!CountOperand()) return false;
  const char c = lexer_.Peek();
  switch (c) {
    case '[':
      return ParseAddress(operand, nesting);
    case '{':
      lexer_.TryChar('{');
      operand->kind = Operand::Kind::kVector;
      return ParseElements('}', operand, nesting);
    case '(':
      if (in_call_) {
        lexer_.TryChar('(');
        operand->kind = Operand::Kind::kList;
        return ParseElements(')', operand, nesting);
      }
      operand->kind = Operand::Kind::kInt;
      return ParseExpressionTerm(nesting, &operand->imm);
    case '!':
      lexer_.TryChar('!');
      if (!ParseName(operand, nesting + 1, false)) return false;
      operand->negated = true;
      return operand->kind == Operand::Kind::kReg || Error("expected a register after '!'");
    case '~':
      operand->kind = Operand::Kind::kInt;
      return ParseExpressionTerm(nesting, &operand->imm);
    default:
      break;
  }
  const bool negative = lexer_.TryChar('-');
  Number number;
  bool bad = false;
  if (lexer_.TryNumber(&number, &bad)) {
    operand->imm = number.bits;
    switch (number.kind) {
      case Number::Kind::kInt:
        operand->kind = Operand::Kind::kInt;
        if (negative) operand->imm = 0 - operand->imm;
        break;
      case Number::Kind::kF32:
        operand->kind = Operand::Kind::kF32;
        if (negative) operand->imm ^= 0x80000000u;
        break;
      case Number::Kind::kF64:
        operand->kind = Operand::Kind::kF64;
        if (negative) operand->imm ^= std::uint64_t{1} << 63;
        break;
    }
    return true;
  }
  if (bad) return Error("malformed number");
  if (negative && lexer_.Peek() == '(') {
    operand->kind = Operand::Kind::kInt;
    if (!ParseExpressionTerm(nesting, &operand->imm)) return false;
    operand->imm = 0 - operand->imm;
    return true;
  }
  if (!ParseName(operand, nesting, true)) return false;
  operand->negated = negative;
  if (negative && operand->kind != Operand::Kind::kReg) {
    return Reject("'-' before something else than a number or register");
  }
  return true;
}

// Up to `close`; the list may be empty.
bool Parser::ParseElements(char close, Operand* operand, int nesting) {
  if (lexer_.TryChar(close)) return true;
  operand->elements.reserve(4);
  do {
    Operand element;
    if (!ParseOperand(&element, nesting + 1)) return false;
    operand->elements.push_back(std::move(element));
  } while (lexer_.TryChar(','));
  return Expect(close);
}

// [base], [base + offset], [base, more...]
bool Parser::ParseAddress(Operand* operand, int nesting) {
  lexer_.TryChar('[');
  operand->kind = Operand::Kind::kAddress;
  const char first = lexer_.Peek();
  Operand& base = operand->elements.emplace_back();
  if ((first >= '0' && first <= '9') || first == '-' || first == '(') {
    base.kind = Operand::Kind::kInt;
    if (!CountOperand() || !ParseExpressionTerm(nesting, &base.imm)) return false;
  } else {
    if (!CountOperand() || !ParseName(&base, nesting + 1, false)) return false;
    if (base.kind != Operand::Kind::kReg && base.kind != Operand::Kind::kSymbol) {
      return Reject("an address needs a register, a name or a number");
    }
  }
  if (!ParseOffset(&operand->imm, nesting)) return false;
  while (lexer_.TryChar(',')) {
    Operand element;
    if (!ParseOperand(&element, nesting + 1)) return false;
    operand->elements.push_back(std::move(element));
  }
  if (!Expect(']')) return false;
  // [a].unified says that a loaded address is the same for all lanes: a hint.
  std::string_view suffix;
  return !lexer_.TryAdjacentDotted(&suffix) || suffix == "unified" || Reject("expected .unified");
}

// {("+" | "-") number}: all added up.
bool Parser::ParseOffset(std::uint64_t* offset, int nesting) {
  for (;;) {
    const bool minus = lexer_.Peek() == '-';
    if (!minus && lexer_.Peek() != '+') return true;
    lexer_.TryChar(minus ? '-' : '+');
    std::uint64_t value = 0;
    if (!ParseExpressionTerm(nesting, &value)) return false;
    *offset += minus ? 0 - value : value;
  }
}

// A register, special register, variable, function, label or '_'. With `offset`, what follows a
// variable's name is added to it.
bool Parser::ParseName(Operand* operand, int nesting, bool offset) {
  std::string_view name;
  if (!lexer_.TryIdentifier(&name)) return Error("expected an operand");
  const bool label_expected = in_branch_ && nesting == 0;
  if (name == "_") {
    operand->kind = Operand::Kind::kSink;
    return true;
  }
  const std::int32_t reg = FindRegister(name);
  if (reg >= 0 && (!label_expected || name[0] == '%')) {
    operand->kind = Operand::Kind::kReg;
    operand->reg = reg;
    lexer_.TryAdjacentDotted(&operand->name);
    return true;
  }
  if (name[0] == '%') {
    if (!IsSpecial(name)) return Reject("undeclared register");
    operand->kind = Operand::Kind::kSpecial;
    std::string_view part;
    if (lexer_.TryAdjacentDotted(&part)) {
      if (part.size() != 1 || std::string_view("xyzw").find(part[0]) == std::string_view::npos) {
        return Reject("{} has no such part", name);
      }
      name = std::string_view(name.data(), name.size() + 2);
    }
    operand->name = name;
    return true;
  }
  operand->kind = Operand::Kind::kSymbol;
  operand->name = name;
  if (!label_expected) {
    const auto local = body_.names.find(name);
    bool known = false;
    if (local != body_.names.end() && local->second.kind == Local::Kind::kVariable) {
      operand->name = local->second.name;
      known = true;
    } else {
      known = module_.variable_index.contains(name) || module_.function_index.contains(name);
    }
    if (known) return !offset || ParseOffset(&operand->imm, nesting);
    if (name == "WARP_SZ") {
      operand->kind = Operand::Kind::kInt;
      operand->imm = 32;
      return true;
    }
    if (nesting > 0) return Reject("undeclared name");
  }
  Pending pending;
  pending.name = name;
  pending.line = lexer_.last_line();
  pending.instruction = static_cast<std::uint32_t>(function_->code.size());
  pending.index = static_cast<std::uint32_t>(operand_scratch_.size());
  // brx names a .branchtargets list.
  pending.branch = label_expected && !in_brx_;
  body_.pending.push_back(pending);
  return true;
}

// Numbers and operators of constant expressions: 64-bit integers, two's complement.
bool Parser::ParseExpressionTerm(int nesting, std::uint64_t* value) {
  if (nesting > kMaxNesting) return Reject("expression nested too deeply");
  if (lexer_.TryChar('(')) {
    std::string_view cast;
    if (lexer_.TryDotted(&cast)) {
      if (cast != "s64" && cast != "u64") return Reject("unknown cast");
      return Expect(')') && ParseExpressionTerm(nesting + 1, value);
    }
    return ParseExpression(0, nesting + 1, value) && Expect(')');
  }
  if (lexer_.TryChar('-')) {
    if (!ParseExpressionTerm(nesting + 1, value)) return false;
    *value = 0 - *value;
    return true;
  }
  if (lexer_.TryChar('+')) return ParseExpressionTerm(nesting + 1, value);
  if (lexer_.TryChar('~')) {
    if (!ParseExpressionTerm(nesting + 1, value)) return false;
    *value = ~*value;
    return true;
  }
  if (lexer_.TryChar('!')) {
    if (!ParseExpressionTerm(nesting + 1, value)) return false;
    *value = *value == 0;
    return true;
  }
  return ParseUnsigned(std::numeric_limits<std::uint64_t>::max(), value);
}

bool Parser::ParseExpression(int precedence, int nesting, std::uint64_t* value) {
  if (!ParseExpressionTerm(nesting, value)) return false;
  for (;;) {
    const Operator* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                         [&](const Operator& op) { return lexer_.Ahead(op.text); });
    if (found == std::end(kOperators) || found->precedence <= precedence) break;
    lexer_.TryChars(found->text);
    std::uint64_t right = 0;
    if (!ParseExpression(found->precedence, nesting + 1, &right)) return false;
    if (!Apply(found->text, *value, right, value)) return Reject("division by zero");
  }
  if (precedence > 0 || !lexer_.TryChar('?')) return true;
  std::uint64_t yes = 0;
  std::uint64_t no = 0;
  if (!ParseExpression(0, nesting + 1, &yes) || !Expect(':')) return false;
  if (!ParseExpression(0, nesting + 1, &no)) return false;
  *value = *value != 0 ? yes : no;
  return true;
}

}  // namespace allranks::ptx
