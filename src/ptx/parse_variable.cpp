// Declarations of variables and parameters, and initialisers.
#include <algorithm>
#include <bit>
#include <limits>

#include "ptx/parser.h"
#include "ptx/parser_impl.h"

namespace allranks::ptx {
namespace {

Space SpaceFromWord(std::string_view word) {
  if (word == "param") return Space::kParam;
  if (word == "reg") return Space::kReg;
  return Space::kNone;
}

int ElementSize(const Variable& variable) {
  // Opaque references (.texref and its kind) are handles of 8 bytes.
  return variable.type == Type::kOther ? 8 : SizeOf(variable.type);
}

bool IsFloat(Type type) {
  return type == Type::kF32 || type == Type::kF64 || type == Type::kF16 || type == Type::kBF16;
}

}  // namespace

// What stands between the state space and the name: alignment, attributes, vector size, type.
bool Parser::ParseTypeWords(Variable* variable) {
  std::string_view word;
  while (lexer_.TryDotted(&word)) {
    if (word == "align") {
      std::uint64_t align = 0;
      if (!ParseUnsigned(kMaxAlign, &align)) return false;
      if (!std::has_single_bit(align)) return Reject("the alignment is not a power of two");
      // After .ptr the alignment is that of the memory pointed to.
      if (variable->type == Type::kNone) variable->align = align;
    } else if (word == "attribute") {
      if (lexer_.TryChars("(.managed)")) {
        variable->managed = true;
      } else if (!SkipParentheses()) {
        return false;
      }
    } else if (word == "v2" || word == "v4" || word == "v8") {
      variable->vector = static_cast<std::uint32_t>(word[1] - '0');
    } else if (variable->type != Type::kNone) {
      // .ptr and the space it points to.
      if (word != "ptr" && word != "global" && word != "const" && word != "shared" &&
          word != "local" && word != "param") {
        return Reject("unexpected word in a declaration");
      }
    } else {
      variable->type = TypeFromWord(word);
      if (variable->type == Type::kNone) return Reject("unknown type");
    }
  }
  if (variable->type == Type::kNone) return Error("expected a type");
  if (variable->type == Type::kPred && variable->space != Space::kReg) {
    return Reject("a predicate can only be a register");
  }
  return true;
}

// name, [sizes]; computes the size in bytes.
bool Parser::ParseDeclarator(Variable* variable, std::vector<std::uint64_t>* dimensions) {
  if (!lexer_.TryIdentifier(&variable->name)) return Error("expected a name");
  std::uint64_t size = static_cast<std::uint64_t>(ElementSize(*variable)) * variable->vector;
  while (lexer_.TryChar('[')) {
    if (dimensions->size() == kMaxNesting) return Reject("too many dimensions");
    std::uint64_t count = 0;
    if (lexer_.Peek() == ']') {
      if (!dimensions->empty()) return Reject("only the first dimension may be left open");
      variable->unsized = true;
    } else {
      if (!ParseUnsigned(kMaxVariableBytes, &count)) return false;
      if (size != 0 && count > kMaxVariableBytes / size) return Reject("variable too large");
    }
    if (!Expect(']')) return false;
    dimensions->push_back(count);
    if (!variable->unsized || dimensions->size() > 1) size *= count;
  }
  if (variable->vector > 1) dimensions->push_back(variable->vector);
  variable->size = variable->unsized ? 0 : size;
  return true;
}

// After the state space: one type, one or more names, initialisers, ';'.
bool Parser::ParseVariables(Space space, const Linkage& linkage, std::vector<Variable>* out) {
  Variable common;
  common.space = space;
  common.is_extern = linkage.is_extern;
  common.is_visible = linkage.is_visible;
  common.is_weak = linkage.is_weak;
  common.is_common = linkage.is_common;
  if (!ParseTypeWords(&common)) return false;
  do {
    Variable variable = common;
    std::vector<std::uint64_t> dimensions;
    if (!ParseDeclarator(&variable, &dimensions)) return false;
    if (lexer_.TryChar('=') && !ParseInitialiser(&variable, dimensions)) return false;
    out->push_back(std::move(variable));
  } while (lexer_.TryChar(','));
  return Expect(';');
}

// "(" [".param" | ".reg" type name [size]] {","} ")"
bool Parser::ParseParameterList(std::vector<Variable>* out) {
  if (!Expect('(')) return false;
  if (lexer_.TryChar(')')) return true;
  do {
    std::string_view word;
    if (!lexer_.TryDotted(&word)) return Error("expected a parameter");
    Variable variable;
    variable.space = SpaceFromWord(word);
    if (variable.space == Space::kNone) return Reject("this is no place for a parameter");
    if (!ParseTypeWords(&variable)) return false;
    std::vector<std::uint64_t> dimensions;
    if (!ParseDeclarator(&variable, &dimensions)) return false;
    out->push_back(std::move(variable));
  } while (lexer_.TryChar(','));
  return Expect(')');
}

bool Parser::ParseInitialiser(Variable* variable, const std::vector<std::uint64_t>& dimensions) {
  const std::uint64_t element = static_cast<std::uint64_t>(ElementSize(*variable));
  if (element == 0) return Reject("this type cannot be initialised");
  if (dimensions.empty()) return ParseInitialiserValue(variable, 0);

  // strides[i]: bytes of one entry of level i.
  std::vector<std::uint64_t> strides(dimensions.size(), element);
  for (std::size_t i = dimensions.size() - 1; i > 0; --i) {
    strides[i - 1] = strides[i] * dimensions[i];
  }
  if (!Expect('{')) return false;
  const std::uint64_t end = variable->unsized ? kMaxVariableBytes : variable->size;
  if (!ParseInitialiserList(variable, strides, 0, 0, end)) return false;
  if (variable->unsized && strides[0] != 0) {
    variable->size = (variable->init.size() + strides[0] - 1) / strides[0] * strides[0];
    variable->unsized = false;
  }
  return true;
}

// After '{'. Values fill [at, end) in order; an inner list fills one entry of the next level.
bool Parser::ParseInitialiserList(Variable* variable, const std::vector<std::uint64_t>& strides,
                                  std::size_t level, std::uint64_t at, std::uint64_t end) {
  const std::uint64_t element = strides.back();
  if (lexer_.TryChar('}')) return true;
  do {
    if (lexer_.TryChar('{')) {
      if (level + 1 >= strides.size()) return Reject("initialiser nested too deeply");
      if (strides[level] > end - at) return Reject("too many values in the initialiser");
      if (!ParseInitialiserList(variable, strides, level + 1, at, at + strides[level])) {
        return false;
      }
      at += strides[level];
    } else {
      if (element > end - at) return Reject("too many values in the initialiser");
      if (!ParseInitialiserValue(variable, at)) return false;
      at += element;
    }
  } while (lexer_.TryChar(','));
  return Expect('}');
}

// A number, symbol, generic(symbol), symbol + offset, or mask(symbol) such as 0xFF00(symbol): the
// byte of the address that the mask selects.
bool Parser::ParseInitialiserValue(Variable* variable, std::uint64_t at) {
  const int size = ElementSize(*variable);
  SymbolRef ref;
  ref.at = at;
  ref.size = static_cast<std::uint8_t>(std::min(size, 8));
  if (lexer_.TryIdentifier(&ref.symbol)) {
    if (ref.symbol == "generic" && lexer_.TryChar('(')) {
      ref.generic = true;
      if (!lexer_.TryIdentifier(&ref.symbol)) return Error("expected a name");
      if (!Expect(')')) return false;
    }
  } else {
    const bool negative = lexer_.TryChar('-');
    Number number;
    if (lexer_.Peek() == '(') {
      if (!ParseExpression(0, 0, &number.bits)) return false;
    } else if (!ParseNumber(&number)) {
      return false;
    }
    if (number.kind != Number::Kind::kInt || lexer_.Peek() != '(') {
      const Type type = variable->type;
      if (number.kind == Number::Kind::kF64 && size != 8) {
        const double value = std::bit_cast<double>(number.bits);
        if (size != 4) return Reject("a decimal float cannot initialise this type");
        number.kind = Number::Kind::kF32;
        number.bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      } else if (number.kind == Number::Kind::kInt && IsFloat(type) && size >= 4) {
        const double value = static_cast<double>(static_cast<std::int64_t>(number.bits));
        number.kind = size == 4 ? Number::Kind::kF32 : Number::Kind::kF64;
        number.bits = size == 4 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                                : std::bit_cast<std::uint64_t>(value);
      }
      if (negative && number.kind == Number::Kind::kInt) number.bits = 0 - number.bits;
      if (negative && number.kind == Number::Kind::kF32) number.bits ^= 0x80000000u;
      if (negative && number.kind == Number::Kind::kF64) number.bits ^= std::uint64_t{1} << 63;
      return StoreBytes(variable, at, number.bits, std::min(size, 8));
    }
    // mask(symbol)
    if (negative || number.bits == 0) return Reject("malformed mask");
    ref.shift = static_cast<std::uint8_t>(std::countr_zero(number.bits));
    const std::uint64_t low = number.bits >> ref.shift;
    if (low != 0xff && low != 0xffff && low != 0xffffffff && ~low != 0) {
      return Reject("a mask must select whole bytes");
    }
    ref.size = static_cast<std::uint8_t>(std::min(size, std::popcount(number.bits) / 8));
    if (!Expect('(')) return false;
    if (!lexer_.TryIdentifier(&ref.symbol)) return Error("expected a name");
    if (ref.symbol == "generic" && lexer_.TryChar('(')) {
      ref.generic = true;
      if (!lexer_.TryIdentifier(&ref.symbol)) return Error("expected a name");
      if (!Expect(')')) return false;
    }
    std::uint64_t offset = 0;
    if (!ParseOffset(&offset, 0) || !Expect(')')) return false;
    ref.addend = static_cast<std::int64_t>(offset);
  }
  std::uint64_t offset = 0;
  if (!ParseOffset(&offset, 0)) return false;
  ref.addend = static_cast<std::int64_t>(static_cast<std::uint64_t>(ref.addend) + offset);
  if (!StoreBytes(variable, at, 0, std::min(size, 8))) return false;
  variable->refs.push_back(ref);
  return true;
}

bool Parser::StoreBytes(Variable* variable, std::uint64_t at, std::uint64_t bits, int size) {
  const std::uint64_t end = at + static_cast<std::uint64_t>(size);
  if (variable->init.size() < end) {
    initialiser_bytes_ += end - variable->init.size();
    if (initialiser_bytes_ > text_bytes_ * kMaxInitialiserBytesPerTextByte) {
      return Reject("the initialisers fill far more memory than they are written with");
    }
    variable->init.resize(end);
  }
  for (int i = 0; i < size; ++i) {
    variable->init[at + static_cast<std::uint64_t>(i)] = static_cast<std::uint8_t>(bits >> (8 * i));
  }
  return true;
}

bool Parser::AddModuleVariable(Variable variable) {
  if (module_.function_index.contains(variable.name)) {
    return ErrorAt(lexer_.last_line(), "declared as a function already", variable.name);
  }
  const auto [found, added] = module_.variable_index.emplace(
      variable.name, static_cast<std::uint32_t>(module_.variables.size()));
  if (added) {
    module_.variables.push_back(std::move(variable));
    return true;
  }
  Variable& known = module_.variables[found->second];
  if (!known.is_extern && !variable.is_extern) {
    return ErrorAt(lexer_.last_line(), "variable declared twice", variable.name);
  }
  if (known.is_extern && !variable.is_extern) known = std::move(variable);
  return true;
}

}  // namespace allranks::ptx
