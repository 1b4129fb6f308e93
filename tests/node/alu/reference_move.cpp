// Models of moves, choices, address spaces and comparisons (see reference.h).
#include <cmath>

#include "alu/formats.h"
#include "alu/reference.h"

namespace allranks::node::alu_test {

namespace {

// The window of a state space within generic addresses. Global and constant memory are addressed as
// they are. A constant's address is that of global memory here, so isspacep.const is never true:
// the ISA lets a program ask, not rely on a window.
constexpr u64 kWindow = 0x10000000000;
u64 BaseOf(const std::string& space) {
  if (space.substr(0, 6) == "shared") return 0x600000000000;
  if (space == "local") return 0x610000000000;
  if (space.substr(0, 5) == "param") return 0x620000000000;
  return 0;
}

int PartBits(char kind) { return kind == 'b' ? 8 : kind == 'h' ? 16 : kind == 'r' ? 32 : 64; }

bool Mov(const Line& line, Model* model) {
  if (line.to.size() == 1 && line.from.size() == 1) {
    model->compute = [wide = line.from[0].kind == 'q'](const u64* s, u64* d) {
      d[0] = s[0];
      if (wide) d[1] = s[1];
    };
  } else if (line.to.size() == 1) {
    const int n = static_cast<int>(line.from.size()), bits = PartBits(line.from[0].kind);
    model->compute = [=](const u64* s, u64* d) {
      u128 all = 0;
      for (int i = n - 1; i >= 0; --i) all = all << bits | s[i];
      d[0] = static_cast<u64>(all);
      if (n * bits == 128) d[1] = static_cast<u64>(all >> 64);
    };
  } else {
    const int n = static_cast<int>(line.to.size()),
              bits = PartBits(line.to[1].kind == '_' ? line.to[0].kind : line.to[1].kind);
    model->compute = [=, wide = line.from[0].kind == 'q'](const u64* s, u64* d) {
      u128 all = wide ? u128{s[1]} << 64 | s[0] : u128{s[0]};
      for (int i = 0; i < n; ++i, all >>= bits) d[i] = static_cast<u64>(all) & Mask(bits);
    };
  }
  return true;
}

}  // namespace

bool MoveModel(const Line& line, Model* model) {
  const std::string& op = line.opcode;
  if (op == "mov") return Mov(line, model);
  if (op == "selp") {
    model->compute = [](const u64* s, u64* d) { d[0] = s[2] != 0 ? s[0] : s[1]; };
  } else if (op == "slct") {
    const bool real = line.Last() == "f32", ftz = line.Has("ftz");
    model->compute = [=](const u64* s, u64* d) {
      // "a is selected if c >= 0"; with .ftz a subnormal c counts as zero, NaN selects b.
      const u32 c = static_cast<u32>(s[2]);
      const bool tiny = ftz && (c & 0x7f800000) == 0;
      const bool first = real ? tiny || Bits<float>(c) >= 0 : c < 0x80000000;
      d[0] = first ? s[0] : s[1];
    };
  } else if (op == "cvta") {
    const bool back = line.words[0] == "to";
    const u64 base = BaseOf(line.words[back ? 1 : 0]);
    model->compute = [=](const u64* s, u64* d) { d[0] = back ? s[0] - base : s[0] + base; };
  } else if (op == "isspacep") {
    const std::string& space = line.words[0];
    const u64 base = BaseOf(space);
    model->compute = [=, global = space == "global"](const u64* s, u64* d) {
      const u64 first = 0x600000000000;
      const bool windows = s[0] >= first && s[0] < first + 3 * kWindow;
      d[0] = (base != 0 ? s[0] >= base && s[0] < base + kWindow : global && !windows) ? 1 : 0;
    };
  } else {
    return false;
  }
  return true;
}

namespace {

// A comparison's word, read once.
struct Comparison {
  enum Order { kEq, kNe, kLt, kLe, kGt, kGe, kNum, kNan };
  Order order;
  bool or_unordered;
};
Comparison ComparisonOf(const std::string& word) {
  if (word == "num") return {Comparison::kNum, false};
  if (word == "nan") return {Comparison::kNan, false};
  const bool unordered = word.size() == 3;
  const std::string o = word.substr(0, 2);
  const Comparison::Order order = o == "eq"                ? Comparison::kEq
                                  : o == "ne"              ? Comparison::kNe
                                  : o == "lt" || o == "lo" ? Comparison::kLt
                                  : o == "le" || o == "ls" ? Comparison::kLe
                                  : o == "gt" || o == "hi" ? Comparison::kGt
                                                           : Comparison::kGe;
  return {order, unordered};
}
template <class T>
bool Holds(const Comparison& c, T a, T b) {
  const bool unordered = a != a || b != b;
  if (c.order == Comparison::kNum) return !unordered;
  if (c.order == Comparison::kNan) return unordered;
  if (unordered) return c.or_unordered;
  switch (c.order) {
    case Comparison::kEq:
      return a == b;
    case Comparison::kNe:
      return a != b;
    case Comparison::kLt:
      return a < b;
    case Comparison::kLe:
      return a <= b;
    case Comparison::kGt:
      return a > b;
    default:
      return a >= b;
  }
}

u64 TrueValue(const Ty& d, bool pair) {
  if (d.kind == 'f') return d.bits == 32 ? 0x3f800000 : 0x3c00;
  if (d.kind == 'B') return 0x3f80;
  return pair ? 0xffff : Mask(d.bits);
}

}  // namespace

bool CompareModel(const Line& line, Model* model) {
  const bool setp = line.opcode == "setp";
  if (!setp && line.opcode != "set") return false;
  const Ty t = TypeOf(line.Last());
  const bool ftz = line.Has("ftz"), pair = t.count == 2;
  const Comparison word = ComparisonOf(line.words[0]);
  const char combine = line.Has("and") ? 'a' : line.Has("or") ? 'o' : line.Has("xor") ? 'x' : 0;
  const auto both = [combine](bool r, bool c) {
    return combine == 'a' ? r && c : combine == 'o' ? r || c : combine == 'x' ? r != c : r;
  };
  const u64 one = setp ? 0 : TrueValue(TypeOf(line.Last(1)), pair);
  // `holds` is one comparison; its last argument is the number of a packed pair's half.
  const auto finish = [=](auto holds) {
    if (setp) {
      model->compute = [=](const u64* s, u64* d) {
        const bool c = combine != 0 && s[2] != 0, r = holds(s, 0);
        d[0] = both(r, c) ? 1 : 0;
        d[1] = both(pair ? holds(s, 1) : !r, c) ? 1 : 0;
      };
    } else {
      model->compute = [=](const u64* s, u64* d) {
        const bool c = combine != 0 && s[2] != 0;
        d[0] = both(holds(s, 0), c) ? one : 0;
        if (pair && both(holds(s, 1), c)) d[0] |= one << 16;
      };
    }
  };
  if (t.integer()) {
    finish([=](const u64* s, int) { return Holds(word, Number(s[0], t), Number(s[1], t)); });
  } else if (t.bits == 16) {
    finish([=, &format = t.kind == 'B' ? kBf16 : kHalf](const u64* s, int part) {
      const auto value = [&](u64 v) {
        const double r = format.Value(static_cast<u16>(v >> (16 * part)));
        return ftz && std::fabs(r) < 0x1p-14 ? 0.0 : r;
      };
      return Holds(word, value(s[0]), value(s[1]));
    });
  } else {
    finish([=](const u64* s, int) {
      const auto value = [&](u64 v) -> double {
        if (t.bits == 64) return Bits<double>(v);
        const float f = Bits<float>(static_cast<u32>(v));
        return ftz ? FlushedSingle(f) : f;
      };
      return Holds(word, value(s[0]), value(s[1]));
    });
  }
  return true;
}

}  // namespace allranks::node::alu_test
