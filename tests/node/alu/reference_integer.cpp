// Models of integer and bit instructions (see reference.h): numbers in 128 bits, bits one by one.
#include <algorithm>

#include "alu/reference.h"

namespace allranks::node::alu_test {

namespace {

// By long division of magnitudes. Division by zero is "unspecified, machine-specific" in the ISA;
// the code that the assembler emits for it gives all ones.
u64 Divided(u64 a, u64 b, const Ty& t, bool remainder) {
  const s128 x = Number(a, t), y = Number(b, t);
  if (y == 0) return Mask(t.bits);
  const u128 ux = static_cast<u128>(x < 0 ? -x : x), uy = static_cast<u128>(y < 0 ? -y : y);
  u128 q = 0, r = 0;
  for (int i = t.bits - 1; i >= 0; --i) {
    r = r << 1 | (ux >> i & 1);
    if (r < uy) continue;
    r -= uy;
    q |= u128{1} << i;
  }
  const s128 v = static_cast<s128>(remainder ? r : q);
  return Wrapped((remainder ? x < 0 : (x < 0) != (y < 0)) ? -v : v, t.bits);
}

// Bits [from, from + bits) of the product, exact in 128 bits for every type.
u64 Product(u64 a, u64 b, const Ty& t, int from, int bits) {
  const u128 p = static_cast<u128>(Number(a, t)) * static_cast<u128>(Number(b, t));
  return static_cast<u64>(p >> from) & Mask(bits);
}

s128 Low24(u64 v, const Ty& t) { return Number(v, 24, t.is_signed()); }

bool Carries(const Line& line, const Ty& t, Model* model) {
  const bool in = line.ReadsCarry(), out = line.WritesCarry();
  if (!in && !out) return false;
  const bool sub = line.opcode.substr(0, 3) == "sub", mad = line.opcode.substr(0, 3) == "mad";
  const bool high = line.Has("hi");
  const int bits = t.bits;
  model->compute = [=](const u64* s, u64* d) {
    const u64 carry = in ? s[mad ? 3 : 2] : 0;
    const u64 first = mad ? Product(s[0], s[1], t, high ? bits : 0, bits) : s[0];
    const u64 second = mad ? s[2] : s[1];
    // A subtraction adds the complement and one, or the carry: it is clear after a borrow, as
    // nvcc's division of 128 bits needs it, which reads the flag of a sub.cc with an addc.
    const s128 x = static_cast<s128>(first);
    const s128 y = static_cast<s128>(sub ? Mask(bits) - second : second);
    const s128 r = x + y + (in ? static_cast<s128>(carry) : sub ? 1 : 0);
    d[0] = Wrapped(r, bits);
    if (out) d[1] = (r >> bits) != 0 ? 1 : 0;
  };
  return true;
}

bool DotProduct(const Line& line, Model* model) {
  const bool four = line.opcode == "dp4a", high = line.Has("hi");
  const bool a_signed = line.Last(1) == "s32", b_signed = line.Last(0) == "s32";
  model->compute = [=](const u64* s, u64* d) {
    s128 sum = static_cast<s128>(s[2]);
    for (int i = 0; i < (four ? 4 : 2); ++i) {
      const int wide = four ? 8 : 16;
      sum += Number(s[0] >> (wide * i), wide, a_signed) *
             Number(s[1] >> (8 * (i + (high ? 2 : 0))), 8, b_signed);
    }
    d[0] = Wrapped(sum, 32);
  };
  return true;
}

}  // namespace

bool IntegerModel(const Line& line, Model* model) {
  const std::string& op = line.opcode;
  if (op == "dp4a" || op == "dp2a") return DotProduct(line, model);
  static const char* const kOpcodes[] = {"add",  "addc", "sub",   "subc", "mul", "mad",
                                         "madc", "sad",  "div",   "rem",  "abs", "neg",
                                         "min",  "max",  "mul24", "mad24"};
  if (std::find(std::begin(kOpcodes), std::end(kOpcodes), op) == std::end(kOpcodes)) return false;
  // nvcc writes .relu behind the type.
  const Ty t = TypeOf(line.Last(line.Last() == "relu" ? 1 : 0));
  if (!t.integer()) return false;
  if (Carries(line, t, model)) return true;
  const bool sat = line.Has("sat"), relu = line.Has("relu");
  const bool high = line.Has("hi"), wide = line.Has("wide");
  const int bits = t.bits;
  const auto put = [bits, sat](s128 v) { return Wrapped(sat ? Clamped(v, bits, true) : v, bits); };
  if (op == "mul" || op == "mad") {
    const int out = wide ? 2 * bits : bits, from = high ? bits : 0;
    const bool add = op == "mad";
    model->compute = [=](const u64* s, u64* d) {
      const u64 part = Product(s[0], s[1], t, from, out);
      if (sat) {
        d[0] = put(Number(part, 32, true) + Number(s[2], 32, true));
      } else {
        d[0] = Wrapped(static_cast<s128>(part) + (add ? static_cast<s128>(s[2]) : 0), out);
      }
    };
  } else if (op == "mul24" || op == "mad24") {
    const bool add = op == "mad24";
    model->compute = [=](const u64* s, u64* d) {
      const s128 p = Low24(s[0], t) * Low24(s[1], t) >> (high ? 16 : 0);
      d[0] = put(p + (add ? Number(s[2], t) : 0));
    };
  } else if (op == "sad") {
    model->compute = [=](const u64* s, u64* d) {
      const s128 v = Number(s[0], t) - Number(s[1], t);
      d[0] = put((v < 0 ? -v : v) + Number(s[2], t));
    };
  } else if (op == "div" || op == "rem") {
    model->compute = [=, remainder = op == "rem"](const u64* s, u64* d) {
      d[0] = Divided(s[0], s[1], t, remainder);
    };
  } else if (op == "abs" || op == "neg") {
    model->compute = [=, abs = op == "abs"](const u64* s, u64* d) {
      const s128 v = Number(s[0], t);
      d[0] = put(abs && v >= 0 ? v : -v);
    };
  } else {
    const auto one = [=, c = op[0], last = op[2]](u64 a, u64 b, u64) -> u64 {
      const s128 x = Number(a, t), y = Number(b, t);
      s128 r = c == 'a' ? x + y : c == 's' ? x - y : last == 'n' ? std::min(x, y) : std::max(x, y);
      if (relu) r = std::max<s128>(r, 0);
      return put(r);
    };
    if (t.count == 2) {
      model->compute = [=](const u64* s, u64* d) { d[0] = BothHalves(one, s[0], s[1]); };
    } else {
      model->compute = [=](const u64* s, u64* d) { d[0] = one(s[0], s[1], 0); };
    }
  }
  return true;
}

namespace {

u64 BitField(const u64* s, const Ty& t) {
  const u64 position = s[1] & 255, length = s[2] & 255, top = static_cast<u64>(t.bits) - 1;
  u64 sign = 0;
  if (t.is_signed() && length != 0) sign = s[0] >> std::min(position + length - 1, top) & 1;
  u64 r = 0;
  for (u64 i = 0; i <= top; ++i) {
    r |= (i < length && position + i <= top ? s[0] >> (position + i) & 1 : sign) << i;
  }
  return r;
}

// The n-th set bit seen from a base, upwards or downwards; itself for n = 0.
u64 FindNth(u64 mask, u64 base, s64 n) {
  constexpr u64 kNone = 0xffffffff;
  if (base > 31) return kNone;
  if (n == 0) return (mask >> base & 1) != 0 ? base : kNone;
  std::vector<u64> seen;
  for (s64 i = static_cast<s64>(base); i >= 0 && i < 32; i += n > 0 ? 1 : -1) {
    if ((mask >> i & 1) != 0) seen.push_back(static_cast<u64>(i));
  }
  const u64 which = static_cast<u64>(n > 0 ? n : -n);
  return which <= seen.size() ? seen[which - 1] : kNone;
}

// Rows as the ISA tabulates them: bytes of {b, a} for the four selectors, most significant first.
struct PermuteMode {
  const char* word;
  int bytes[4][4];
};
constexpr PermuteMode kPermuteModes[] = {
    {"f4e", {{3, 2, 1, 0}, {4, 3, 2, 1}, {5, 4, 3, 2}, {6, 5, 4, 3}}},
    {"b4e", {{5, 6, 7, 0}, {6, 7, 0, 1}, {7, 0, 1, 2}, {0, 1, 2, 3}}},
    {"rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
    {"ecl", {{3, 2, 1, 0}, {3, 2, 1, 1}, {3, 2, 2, 2}, {3, 3, 3, 3}}},
    {"ecr", {{0, 0, 0, 0}, {1, 1, 1, 0}, {2, 2, 1, 0}, {3, 2, 1, 0}}},
    {"rc16", {{1, 0, 1, 0}, {3, 2, 3, 2}, {1, 0, 1, 0}, {3, 2, 3, 2}}}};

u64 Permuted(const u64* s, const PermuteMode* mode) {
  const u64 all = s[1] << 32 | s[0];
  u64 r = 0;
  for (int i = 3; i >= 0; --i) {
    const u64 nibble = s[2] >> (4 * i) & 15;
    const u64 which = mode != nullptr ? static_cast<u64>(mode->bytes[s[2] & 3][3 - i]) : nibble & 7;
    u64 byte = all >> (8 * which) & 0xff;
    if (mode == nullptr && nibble >= 8) byte = byte >= 0x80 ? 0xff : 0;
    r = r << 8 | byte;
  }
  return r;
}

u64 Table3(u64 table, u64 a, u64 b, u64 c) {
  u64 r = 0;
  for (int i = 0; i < 32; ++i) {
    r |= (table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i;
  }
  return r;
}

bool Counting(const Line& line, const Ty& t, Model* model) {
  const std::string& op = line.opcode;
  const int top = t.bits - 1;
  if (op == "popc") {
    model->compute = [](const u64* s, u64* d) {
      d[0] = 0;
      for (u64 v = s[0]; v != 0; v &= v - 1) ++d[0];
    };
  } else if (op == "clz") {
    model->compute = [=](const u64* s, u64* d) {
      int n = 0;
      while (n <= top && (s[0] >> (top - n) & 1) == 0) ++n;
      d[0] = static_cast<u64>(n);
    };
  } else if (op == "brev") {
    model->compute = [=](const u64* s, u64* d) {
      d[0] = 0;
      for (int i = 0; i <= top; ++i) d[0] |= (s[0] >> i & 1) << (top - i);
    };
  } else if (op == "bfind") {
    model->compute = [=, shift = line.Has("shiftamt")](const u64* s, u64* d) {
      const u64 skip = t.is_signed() ? s[0] >> top & 1 : 0;
      int i = top;
      while (i >= 0 && (s[0] >> i & 1) == skip) --i;
      d[0] = i < 0 ? 0xffffffff : static_cast<u64>(shift ? top - i : i);
    };
  } else {
    return false;
  }
  return true;
}

bool Shifting(const Line& line, const Ty& t, Model* model) {
  const std::string& op = line.opcode;
  const bool wrap = line.Has("wrap");
  const int bits = t.bits;
  if (op == "shl") {
    model->compute = [=](const u64* s, u64* d) {
      d[0] = s[1] >= static_cast<u64>(bits) ? 0 : s[0] << s[1] & Mask(bits);
    };
  } else if (op == "shr") {
    model->compute = [=](const u64* s, u64* d) {
      d[0] = Wrapped(Number(s[0], t) >> std::min<u64>(s[1], 127), bits);
    };
  } else if (op == "shf") {
    model->compute = [=, left = line.words[0] == "l"](const u64* s, u64* d) {
      const u64 n = wrap ? s[2] % 32 : std::min<u64>(s[2], 32);
      const u128 both = u128{s[1]} << 32 | s[0];
      d[0] = static_cast<u64>(left ? both << n >> 32 : both >> n) & 0xffffffff;
    };
  } else if (op == "bmsk") {
    model->compute = [=](const u64* s, u64* d) {
      const u64 a = wrap ? s[0] % 32 : s[0], b = wrap ? s[1] % 32 : std::min<u64>(s[1], 32);
      d[0] = a >= 32 ? 0 : static_cast<u64>(((u128{1} << b) - 1) << a) & 0xffffffff;
    };
  } else if (op == "szext") {
    model->compute = [=](const u64* s, u64* d) {
      const int n = static_cast<int>(wrap ? s[1] % 32 : std::min<u64>(s[1], 32));
      d[0] = n == 0 ? 0 : Wrapped(Number(s[0], n, t.is_signed()), 32);
    };
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool BitModel(const Line& line, Model* model) {
  const std::string& op = line.opcode;
  const Ty t = TypeOf(line.Last());
  const int bits = t.kind == 'p' ? 1 : t.bits;
  if (Counting(line, t, model) || Shifting(line, t, model)) return true;
  if (op == "and" || op == "or" || op == "xor") {
    model->compute = [=, c = op[0]](const u64* s, u64* d) {
      const u64 x = s[0], y = s[1];
      d[0] = c == 'a' ? ~(~x | ~y) : c == 'o' ? ~(~x & ~y) : (x | y) & ~(x & y);
      d[0] &= Mask(bits);
    };
  } else if (op == "not") {
    model->compute = [=](const u64* s, u64* d) { d[0] = Mask(bits) - s[0]; };
  } else if (op == "cnot") {
    model->compute = [](const u64* s, u64* d) { d[0] = s[0] == 0 ? 1 : 0; };
  } else if (op == "bfe") {
    model->compute = [=](const u64* s, u64* d) { d[0] = BitField(s, t); };
  } else if (op == "bfi") {
    model->compute = [=](const u64* s, u64* d) {
      const u64 position = s[2] & 255, length = s[3] & 255;
      d[0] = s[1];
      for (u64 i = 0; i < length && position + i < static_cast<u64>(bits); ++i) {
        const u64 bit = u64{1} << (position + i);
        d[0] = (s[0] >> i & 1) != 0 ? d[0] | bit : d[0] & ~bit;
      }
    };
  } else if (op == "fns") {
    model->compute = [](const u64* s, u64* d) {
      d[0] = FindNth(s[0], s[1], static_cast<s64>(Number(s[2], 32, true)));
    };
  } else if (op == "lop3") {
    if (line.words.size() == 1) {
      model->compute = [](const u64* s, u64* d) { d[0] = Table3(s[3], s[0], s[1], s[2]); };
    } else {
      const bool any = line.words[0] == "or", sink = line.to[0].kind == '_';
      model->compute = [=](const u64* s, u64* d) {
        const u64 r = Table3(s[3], s[0], s[1], s[2]), p = r != 0 ? 1 : 0;
        if (!sink) d[0] = r;
        d[1] = any ? p | s[4] : p & s[4];
      };
    }
  } else if (op == "prmt") {
    const PermuteMode* mode = nullptr;
    for (const PermuteMode& m : kPermuteModes) {
      if (line.Has(m.word)) mode = &m;
    }
    model->compute = [mode](const u64* s, u64* d) { d[0] = Permuted(s, mode); };
  } else {
    return false;
  }
  return true;
}

}  // namespace allranks::node::alu_test
