// Selection of video instructions (see alu_select.cpp): their selectors, masks and second
// operations all go into Op::imm, as VideoImm and SimdImm of alu_table.h lay out.
#include "node/alu/alu_builder.h"

namespace allranks::node::alu {

namespace {

struct Name {
  std::string_view name;
  std::uint32_t what;
};
constexpr Name kNames[] = {{"vadd", kVadd},  {"vsub", kVsub}, {"vabsdiff", kVabsdiff},
                           {"vmin", kVmin},  {"vmax", kVmax}, {"vavrg", kVavrg},
                           {"vshl", kVshl},  {"vshr", kVshr}, {"vmad", kVmad},
                           {"vset", kVsetEq}};
constexpr std::string_view kCompares[] = {"eq", "ne", "lt", "le", "gt", "ge"};

// Selector of a scalar operand: "", "b0" to "b3", "h0", "h1".
bool ReadSelector(std::string_view word, std::uint32_t* select) {
  constexpr std::string_view kWords[] = {"", "b0", "b1", "b2", "b3", "h0", "h1"};
  for (std::uint32_t i = 0; i < 7; ++i) {
    if (kWords[i] != word) continue;
    *select = i;
    return true;
  }
  return false;
}

// Selectors of a SIMD operand, "h10" or "b3210", first the highest part's; empty: from `first` on.
bool ReadParts(std::string_view word, int parts, std::uint32_t first, std::uint32_t* selectors) {
  *selectors = 0;
  if (word.empty()) {
    for (int i = 0; i < parts; ++i) {
      *selectors |= (first + static_cast<std::uint32_t>(i)) << (3 * i);
    }
    return true;
  }
  if (word.size() != static_cast<std::size_t>(parts) + 1 || word[0] != (parts == 2 ? 'h' : 'b')) {
    return false;
  }
  for (int i = 0; i < parts; ++i) {
    const char c = word[word.size() - 1 - static_cast<std::size_t>(i)];
    if (c < '0' || c >= '0' + 2 * parts) return false;
    *selectors |= static_cast<std::uint32_t>(c - '0') << (3 * i);
  }
  return true;
}

// Mask of a SIMD result, "h1" or "b310": the parts that are written, in falling order.
bool ReadMask(std::string_view word, int parts, std::uint32_t* mask) {
  *mask = (1u << parts) - 1;
  if (word.empty()) return true;
  if (word[0] != (parts == 2 ? 'h' : 'b') || word.size() < 2) return false;
  *mask = 0;
  char before = static_cast<char>('0' + parts);
  for (const char c : word.substr(1)) {
    if (c < '0' || c >= before) return false;
    *mask |= 1u << (c - '0');
    before = c;
  }
  return true;
}

}  // namespace

bool Builder::Video() {
  std::string_view op = in_.opcode;
  const char last = op.back();
  const int parts = last == '2' ? 2 : last == '4' ? 4 : 1;
  if (parts != 1) op.remove_suffix(1);
  const Name* name = nullptr;
  for (const Name& n : kNames) {
    if (n.name == op) name = &n;
  }
  if (name == nullptr) return false;
  std::uint32_t what = name->what;
  const bool compare = what == kVsetEq;
  // Types come first: of the result (not of comparisons), of a, of b.
  const int types = compare ? 2 : 3;
  if (words_.types != types || words_.ftz || words_.relu || words_.satfinite) return false;
  for (int i = 0; i < types; ++i) {
    const std::string_view m = in_.modifiers[static_cast<std::size_t>(i)];
    if (m != "u32" && m != "s32") return false;
  }
  if (compare) {
    bool found = false;
    for (std::uint32_t i = 0; i < 6; ++i) {
      if (in_.modifiers.size() <= 2 || in_.modifiers[2] != kCompares[i]) continue;
      what = kVsetEq + i;
      found = true;
    }
    if (!found) return false;
  }
  for (const Operand& o : in_.operands) {
    if (o.negated && what != kVmad) return false;
  }
  selectors_ = true;
  if (parts != 1) return VideoSimd(what, parts);

  std::uint32_t& imm = form_.imm;
  if (words_.type2 == Type::kS32) imm |= VideoImm::kSignedA;
  if (words_.type == Type::kS32) imm |= VideoImm::kSignedB;
  if (words_.type3 == Type::kS32) imm |= VideoImm::kSignedD;
  if (words_.sat) imm |= VideoImm::kSat;
  const bool shift = what == kVshl || what == kVshr;
  int others = compare ? 1 : 0;
  bool mode = false;
  std::uint32_t second = kNoSecond;
  for (const std::string_view m : in_.modifiers) {
    if (shift && (m == "wrap" || m == "clamp")) {
      if (m == "wrap") imm |= VideoImm::kWrap;
      mode = true;
    } else if (what == kVmad && m == "po") {
      imm |= VideoImm::kPlusOne;
    } else if (what == kVmad && (m == "shr7" || m == "shr15")) {
      imm |= (m == "shr7" ? 7u : 15u) << VideoImm::kScale;
    } else if (what != kVmad && (m == "add" || m == "min" || m == "max")) {
      second = m == "add" ? kSecondAdd : m == "min" ? kSecondMin : kSecondMax;
    } else {
      continue;
    }
    ++others;
  }
  if (shift && (!mode || words_.type != Type::kU32)) return false;
  imm |= second << VideoImm::kSecond;
  const std::size_t n = in_.operands.size();
  if (n != 3 && n != 4) return false;
  std::uint32_t of_a = 0, of_b = 0, of_d = 0, of_c = 0;
  if (!ReadSelector(At(1).name, &of_a) || !ReadSelector(At(2).name, &of_b) ||
      !ReadSelector(At(0).name, &of_d) || (n == 4 && !ReadSelector(At(3).name, &of_c))) {
    return false;
  }
  // A third source belongs to a second operation or to a merge, and to vmad.
  if (of_c != 0 || (of_d != 0 && (what == kVmad || second != kNoSecond))) return false;
  if ((n == 4) != (what == kVmad || second != kNoSecond || of_d != 0)) return false;
  if (what == kVmad) {
    if (At(1).negated != At(2).negated) imm |= VideoImm::kNegateProduct;
    if (At(3).negated) imm |= VideoImm::kNegateC;
    if ((imm & VideoImm::kNegateProduct) != 0 && (imm & VideoImm::kNegateC) != 0) return false;
  }
  imm |= of_a << VideoImm::kSelectA | of_b << VideoImm::kSelectB | of_d << VideoImm::kSelectD;
  if (n == 4) {
    Plain3(Type::kB32, {Type::kB32, Type::kB32, Type::kB32});
  } else {
    Plain3(Type::kB32, {Type::kB32, Type::kB32});
  }
  form_.cycles = 4;
  return Done(Key(AluOp::kVideo, Type::kNone, Type::kNone, what), others);
}

bool Builder::VideoSimd(std::uint32_t what, int parts) {
  const bool add = in_.modifiers.back() == "add";
  if (!Operands(4) || !At(3).name.empty() || (add && words_.sat) || what == kVshl ||
      what == kVshr || what == kVmad) {
    return false;
  }
  std::uint32_t of_a = 0, of_b = 0, mask = 0;
  if (!ReadParts(At(1).name, parts, 0, &of_a) ||
      !ReadParts(At(2).name, parts, static_cast<std::uint32_t>(parts), &of_b) ||
      !ReadMask(At(0).name, parts, &mask)) {
    return false;
  }
  const std::uint32_t second = add                          ? kAccumulate
                               : !words_.sat                ? kMerge
                               : words_.type3 == Type::kS32 ? kMergeSatSigned
                                                            : kMergeSatUnsigned;
  form_.imm = of_a << SimdImm::kSelectA | of_b << SimdImm::kSelectB | mask << SimdImm::kMask |
              second << SimdImm::kSecond;
  if (words_.type2 == Type::kS32) form_.imm |= 1u << SimdImm::kSignedA;
  if (words_.type == Type::kS32) form_.imm |= 1u << SimdImm::kSignedB;
  Plain3(Type::kB32, {Type::kB32, Type::kB32, Type::kB32});
  form_.cycles = 4;
  return Done(Key(parts == 2 ? AluOp::kVideo2 : AluOp::kVideo4, Type::kNone, Type::kNone, what),
              (add ? 1 : 0) + (what >= kVsetEq ? 1 : 0));
}

}  // namespace allranks::node::alu
