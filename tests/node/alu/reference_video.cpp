// Models of the video instructions (see reference.h), after the pseudo-code of the PTX ISA.
#include <algorithm>

#include "alu/reference.h"

namespace allranks::node::alu_test {

namespace {

// Value of "b2", "h1" or of the whole word.
s128 Selected(u64 v, const std::string& selector, bool is_signed) {
  if (selector.empty()) return Number(v, 32, is_signed);
  const int bits = selector[0] == 'b' ? 8 : 16;
  return Number(v >> (bits * (selector[1] - '0')), bits, is_signed);
}

// The operation and the comparison, read once.
int Index(const std::string& word, std::initializer_list<const char*> words) {
  int i = 0;
  for (const char* w : words) {
    if (word == w) return i;
    ++i;
  }
  return -1;
}
s128 Primary(int op, s128 a, s128 b) {
  switch (op) {
    case 0:
      return a + b;
    case 1:
      return a - b;
    case 2:
      return std::max(a, b) - std::min(a, b);
    case 3:
      return std::min(a, b);
    case 4:
      return std::max(a, b);
    default:  // vavrg rounds up where the sum is not negative
      return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
  }
}
bool Compared(int compare, s128 a, s128 b) {
  const bool kResults[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
  return kResults[compare];
}

u64 MultiplyAdded(const Line& line, const u64* s) {
  const Place &a = line.from[0], &b = line.from[1], &c = line.from[2];
  const bool a_signed = line.words[1] == "s32", b_signed = line.words[2] == "s32";
  const bool is_signed = a_signed || b_signed || a.negated != b.negated || c.negated;
  const s128 product = Selected(s[0], a.selector, a_signed) * Selected(s[1], b.selector, b_signed);
  // ~x + 1 is -x in the pseudo-code.
  const s128 signed_product = a.negated != b.negated ? -product : product;
  const s128 third = Number(s[2], 32, is_signed);
  // -c is the complement of the word, extended, plus one: of unsigned words in 128 bits not -c.
  const s128 sum = signed_product + (c.negated ? Number(~s[2], 32, is_signed) + 1 : third) +
                   (line.Has("po") ? 1 : 0);
  const s128 r = sum >> (line.Has("shr7") ? 7 : line.Has("shr15") ? 15 : 0);
  return Wrapped(line.Has("sat") ? Clamped(r, 32, is_signed) : r, 32);
}

// Part numbers of "h10", "b3210": the lowest part's last.
std::vector<int> PartsOf(const std::string& selector, int parts, int first) {
  std::vector<int> r;
  for (int i = 0; i < parts; ++i) {
    r.push_back(selector.empty() ? first + i : selector[selector.size() - 1 - i] - '0');
  }
  return r;
}

}  // namespace

bool VideoModel(const Line& line, Model* model) {
  if (line.opcode[0] != 'v') return false;
  std::string op = line.opcode;
  const int parts = op.back() == '2' ? 2 : op.back() == '4' ? 4 : 1;
  if (parts != 1) op.pop_back();
  if (op == "vmad") {
    model->compute = [line](const u64* s, u64* d) { d[0] = MultiplyAdded(line, s); };
    return true;
  }
  const bool set = op == "vset";
  const std::size_t first = set ? 0 : 1;
  const bool d_signed = !set && line.words[0] == "s32";
  const bool a_signed = line.words[first] == "s32", b_signed = line.words[first + 1] == "s32";
  const int compare = set ? Index(line.words[2], {"eq", "ne", "lt", "le", "gt", "ge"}) : 0;
  const int operation = Index(op, {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg"});
  const bool sat = line.Has("sat"), add = line.Has("add");
  const std::string mask = line.to[0].selector;
  const std::string of_a = line.from[0].selector, of_b = line.from[1].selector;
  const auto primary = [=](s128 a, s128 b) {
    return set ? s128{Compared(compare, a, b)} : Primary(operation, a, b);
  };
  if (parts != 1) {
    const int bits = 32 / parts;
    const std::vector<int> from_a = PartsOf(of_a, parts, 0), from_b = PartsOf(of_b, parts, parts);
    model->compute = [=](const u64* s, u64* d) {
      const u64 both = s[1] << 32 | s[0];
      u64 merged = 0;
      s128 sum = static_cast<s128>(s[2]);
      for (int i = 0; i < parts; ++i) {
        s128 t = primary(Number(both >> (bits * from_a[i]), bits, a_signed),
                         Number(both >> (bits * from_b[i]), bits, b_signed));
        if (sat) t = Clamped(t, bits, d_signed);
        const bool chosen =
            mask.empty() || mask.find(static_cast<char>('0' + i)) != std::string::npos;
        if (chosen) sum += t;
        merged |= (chosen ? Wrapped(t, bits) : s[2] >> (bits * i) & Mask(bits)) << (bits * i);
      }
      d[0] = add ? Wrapped(sum, 32) : merged;
    };
    return true;
  }
  const bool shift = op == "vshl" || op == "vshr", left = op == "vshl", wrap = line.Has("wrap");
  const bool minimum = line.Has("min"), maximum = line.Has("max");
  model->compute = [=](const u64* s, u64* d) {
    const s128 a = Selected(s[0], of_a, a_signed);
    const s128 b = Selected(s[1], of_b, shift ? false : b_signed);
    s128 t = 0;
    if (shift) {
      const int n = static_cast<int>(wrap ? b & 31 : std::min<s128>(b, 32));
      t = left ? a * (s128{1} << n) : a >> n;
    } else {
      t = primary(a, b);
    }
    const int bits = mask.empty() ? 32 : mask[0] == 'b' ? 8 : 16;
    if (sat) t = Clamped(t, bits, d_signed);
    if (!mask.empty()) {
      const int at = bits * (mask[1] - '0');
      d[0] = (s[2] & ~(Mask(bits) << at)) | Wrapped(t, bits) << at;
      return;
    }
    // The second operation is on words of the result's type.
    const s128 x = Number(Wrapped(t, 32), 32, d_signed);
    const s128 y = add || minimum || maximum ? Number(s[2], 32, d_signed) : 0;
    d[0] = Wrapped(minimum ? std::min(x, y) : maximum ? std::max(x, y) : x + y, 32);
  };
  return true;
}

}  // namespace allranks::node::alu_test
