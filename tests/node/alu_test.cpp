// Integer arithmetic, bits, moves, comparisons of integers and predicates, and the selection
// itself. Expectations are written in 128-bit or bit-by-bit arithmetic, unlike the handlers.
#include <fstream>
#include <limits>

#include "alu/harness.h"

namespace allranks::node::alu_test {
namespace {

__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;

template <class T>
const char* kName = "";
template <>
const char* kName<u16> = "u16";
template <>
const char* kName<s16> = "s16";
template <>
const char* kName<u32> = "u32";
template <>
const char* kName<s32> = "s32";
template <>
const char* kName<u64> = "u64";
template <>
const char* kName<s64> = "s64";
template <class T>
constexpr int kBits = 8 * sizeof(T);

template <class T>
std::string Form(const std::string& name) {
  return name + "." + kName<T>;
}
template <class T>
T Wrap(s128 v) {
  return static_cast<T>(static_cast<u128>(v));
}
template <class T>
T Saturated(s128 v) {
  const s128 low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return static_cast<T>(v < low ? low : v > high ? high : v);
}
// Quotient of magnitudes by long division, then the sign.
template <class T>
T Quotient(T a, T b, bool remainder) {
  if (b == 0) return static_cast<T>(-1);
  const bool na = s128{a} < 0, nb = s128{b} < 0;
  const u128 ua = na ? static_cast<u128>(-s128{a}) : static_cast<u128>(a);
  const u128 ub = nb ? static_cast<u128>(-s128{b}) : static_cast<u128>(b);
  u128 q = 0, r = 0;
  for (int i = 63; i >= 0; --i) {
    r = r << 1 | ((ua >> i) & 1);
    if (r >= ub) {
      r -= ub;
      q |= u128{1} << i;
    }
  }
  if (remainder) return Wrap<T>(na ? -static_cast<s128>(r) : static_cast<s128>(r));
  return Wrap<T>(na != nb ? -static_cast<s128>(q) : static_cast<s128>(q));
}

template <class T>
class AluInteger : public ::testing::Test {};
using AllTypes = ::testing::Types<u16, s16, u32, s32, u64, s64>;
TYPED_TEST_SUITE(AluInteger, AllTypes);

TYPED_TEST(AluInteger, AddSubMulMad) {
  using T = TypeParam;
  Check2<T, T, T>(Form<T>("add"), [](T a, T b) { return Wrap<T>(s128{a} + b); });
  Check2<T, T, T>(Form<T>("sub"), [](T a, T b) { return Wrap<T>(s128{a} - b); });
  Check2<T, T, T>(Form<T>("mul.lo"), [](T a, T b) {
    return static_cast<T>(static_cast<u128>(s128{a}) * static_cast<u128>(s128{b}));
  });
  Check2<T, T, T>(Form<T>("mul.hi"), [](T a, T b) {
    if constexpr (std::is_unsigned_v<T>) return static_cast<T>((u128{a} * b) >> kBits<T>);
    return Wrap<T>((s128{a} * b) >> kBits<T>);
  });
  Check3<T, T, T, T>(Form<T>("mad.lo"), [](T a, T b, T c) {
    return static_cast<T>(static_cast<u128>(s128{a}) * static_cast<u128>(s128{b}) +
                          static_cast<u128>(s128{c}));
  });
  Check3<T, T, T, T>(Form<T>("mad.hi"), [](T a, T b, T c) {
    if constexpr (std::is_unsigned_v<T>) return static_cast<T>(((u128{a} * b) >> kBits<T>)+c);
    return Wrap<T>(((s128{a} * b) >> kBits<T>)+c);
  });
}

TYPED_TEST(AluInteger, DivisionNeverTraps) {
  using T = TypeParam;
  Check2<T, T, T>(Form<T>("div"), [](T a, T b) { return Quotient(a, b, false); }, 10000);
  Check2<T, T, T>(Form<T>("rem"), [](T a, T b) { return Quotient(a, b, true); }, 10000);
}

TYPED_TEST(AluInteger, MinMaxAbsNegSad) {
  using T = TypeParam;
  Check2<T, T, T>(Form<T>("min"), [](T a, T b) { return std::min(a, b); });
  Check2<T, T, T>(Form<T>("max"), [](T a, T b) { return std::max(a, b); });
  Check3<T, T, T, T>(Form<T>("sad"), [](T a, T b, T c) {
    const s128 d = s128{a} - b;
    return Wrap<T>((d < 0 ? -d : d) + c);
  });
  if constexpr (std::is_signed_v<T>) {
    Check1<T, T>(Form<T>("neg"), [](T a) { return Wrap<T>(-s128{a}); });
    Check1<T, T>(Form<T>("abs"), [](T a) { return Wrap<T>(a < 0 ? -s128{a} : s128{a}); });
  }
}

TYPED_TEST(AluInteger, Setp) {
  using T = TypeParam;
  Check2<bool, T, T>(Form<T>("setp.eq"), [](T a, T b) { return a == b; });
  Check2<bool, T, T>(Form<T>("setp.ne"), [](T a, T b) { return a != b; });
  Check2<bool, T, T>(Form<T>("setp.lt"), [](T a, T b) { return a < b; });
  Check2<bool, T, T>(Form<T>("setp.le"), [](T a, T b) { return a <= b; });
  Check2<bool, T, T>(Form<T>("setp.gt"), [](T a, T b) { return a > b; });
  Check2<bool, T, T>(Form<T>("setp.ge"), [](T a, T b) { return a >= b; });
  if constexpr (std::is_unsigned_v<T>) {
    Check2<bool, T, T>(Form<T>("setp.lo"), [](T a, T b) { return a < b; });
    Check2<bool, T, T>(Form<T>("setp.ls"), [](T a, T b) { return a <= b; });
    Check2<bool, T, T>(Form<T>("setp.hi"), [](T a, T b) { return a > b; });
    Check2<bool, T, T>(Form<T>("setp.hs"), [](T a, T b) { return a >= b; });
  }
}

TYPED_TEST(AluInteger, Shifts) {
  using T = TypeParam;
  Check2<T, T, u32>(Form<T>("shr"), [](T a, u32 n) {
    T r = a;
    for (u32 i = 0; i < n && i < 64; ++i) r = static_cast<T>(r >> 1);
    return r;
  });
  Check2<T, T, u32>("shl.b" + std::to_string(kBits<T>), [](T a, u32 n) {
    return n > 127 ? T{0} : static_cast<T>(static_cast<u128>(a) << n);
  });
}

TEST(AluInteger32, Saturating) {
  Check2<s32, s32, s32>("add.sat.s32", [](s32 a, s32 b) { return Saturated<s32>(s128{a} + b); });
  Check2<s32, s32, s32>("sub.sat.s32", [](s32 a, s32 b) { return Saturated<s32>(s128{a} - b); });
  Check3<s32, s32, s32, s32>("mad.hi.sat.s32", [](s32 a, s32 b, s32 c) {
    return Saturated<s32>(((s128{a} * b) >> 32) + c);
  });
}

TEST(AluInteger32, WideProducts) {
  Check2<u32, u16, u16>("mul.wide.u16", [](u16 a, u16 b) { return u32{a} * b; });
  Check2<s32, s16, s16>("mul.wide.s16", [](s16 a, s16 b) { return s32{a} * b; });
  Check2<u64, u32, u32>("mul.wide.u32", [](u32 a, u32 b) { return static_cast<u64>(u128{a} * b); });
  Check2<s64, s32, s32>("mul.wide.s32", [](s32 a, s32 b) { return static_cast<s64>(s128{a} * b); });
  Check3<u32, u16, u16, u32>("mad.wide.u16",
                             [](u16 a, u16 b, u32 c) { return Wrap<u32>(s128{a} * b + c); });
  Check3<s32, s16, s16, s32>("mad.wide.s16",
                             [](s16 a, s16 b, s32 c) { return Wrap<s32>(s128{a} * b + c); });
  Check3<u64, u32, u32, u64>("mad.wide.u32",
                             [](u32 a, u32 b, u64 c) { return Wrap<u64>(s128{a} * b + c); });
  Check3<s64, s32, s32, s64>("mad.wide.s32",
                             [](s32 a, s32 b, s64 c) { return Wrap<s64>(s128{a} * b + c); });
}

s128 Low24(u32 a) { return a & 0xffffff; }
s128 Low24(s32 a) {
  const s128 v = a & 0xffffff;
  return v >= 0x800000 ? v - 0x1000000 : v;
}
template <class T>
void CheckMul24() {
  Check2<T, T, T>(Form<T>("mul24.lo"), [](T a, T b) { return Wrap<T>(Low24(a) * Low24(b)); });
  Check2<T, T, T>(Form<T>("mul24.hi"),
                  [](T a, T b) { return Wrap<T>((Low24(a) * Low24(b)) >> 16); });
  Check3<T, T, T, T>(Form<T>("mad24.lo"),
                     [](T a, T b, T c) { return Wrap<T>(Low24(a) * Low24(b) + c); });
  Check3<T, T, T, T>(Form<T>("mad24.hi"),
                     [](T a, T b, T c) { return Wrap<T>(((Low24(a) * Low24(b)) >> 16) + c); });
}
TEST(AluInteger32, Mul24) {
  CheckMul24<u32>();
  CheckMul24<s32>();
  Check3<s32, s32, s32, s32>("mad24.hi.sat.s32", [](s32 a, s32 b, s32 c) {
    return Saturated<s32>(((Low24(a) * Low24(b)) >> 16) + c);
  });
}

// %p5 is the carry. Model of `d = x + y + in`, all below 2^64. A subtraction adds the complement,
// so its carry is clear where it borrows.
template <class T>
void CheckCarry(const std::string& t) {
  constexpr int kShift = kBits<T>;
  const auto get = [](const Thread& x, int i) -> s128 { return Get<T>(x, i); };
  const auto store = [](Thread* x, s128 v, bool out) {
    Put<T>(x, Wrap<T>(v));
    if (out) x->p[5] = (v >> kShift) != 0;
  };
  const std::string r = RegisterName<T>(0) + ", " + RegisterName<T>(1) + ", " + RegisterName<T>(2);
  for (const bool in : {false, true}) {
    for (const bool out : {false, true}) {
      if (!in && !out) continue;
      const std::string tail = std::string(out ? ".cc" : "") + t + " " + r + ";";
      Check((in ? "addc" : "add") + tail,
            [=](Thread* x) { store(x, get(*x, 1) + get(*x, 2) + (in ? x->p[5] : 0), out); });
      Check((in ? "subc" : "sub") + tail, [=](Thread* x) {
        const s128 complement = static_cast<T>(~Get<T>(*x, 2));
        store(x, get(*x, 1) + complement + (in ? x->p[5] : 1), out);
      });
      for (const bool high : {false, true}) {
        const std::string mad = std::string(in ? "madc" : "mad") + (high ? ".hi" : ".lo") +
                                (out ? ".cc" : "") + t + " " + r + ", " + RegisterName<T>(3) + ";";
        Check(mad, [=](Thread* x) {
          const u128 product = static_cast<u128>(get(*x, 1)) * static_cast<u128>(get(*x, 2));
          const T part = static_cast<T>(high ? product >> kShift : product);
          store(x, s128{part} + get(*x, 3) + (in ? x->p[5] : 0), out);
        });
      }
    }
  }
}
TEST(AluCarry, Chains32) { CheckCarry<u32>(".u32"); }
TEST(AluCarry, Chains64) { CheckCarry<u64>(".u64"); }
TEST(AluCarry, SignedHigh) {
  Check("mad.hi.cc.s32 %r0, %r1, %r2, %r3;", [](Thread* x) {
    const u32 part =
        static_cast<u32>((s64{static_cast<s32>(x->r[1])} * static_cast<s32>(x->r[2])) >> 32);
    const u64 sum = u64{part} + x->r[3];
    x->r[0] = static_cast<u32>(sum);
    x->p[5] = (sum >> 32) != 0;
  });
}
// A dead result leaves the carry.
TEST(AluCarry, SinkKeepsTheCarry) {
  Check("add.cc.u32 _, %r1, %r2;", [](Thread* x) { x->p[5] = ((x->r[1] + x->r[2]) >> 32) != 0; });
}

template <class A, class B>
void CheckDot(const std::string& types) {
  Check3<u32, u32, u32, u32>("dp4a" + types, [](u32 a, u32 b, u32 c) {
    s64 sum = c;
    for (int i = 0; i < 4; ++i) sum += s64{static_cast<A>(a >> 8 * i)} * static_cast<B>(b >> 8 * i);
    return static_cast<u32>(sum);
  });
  using A16 = std::conditional_t<std::is_signed_v<A>, s16, u16>;
  for (const int first : {0, 2}) {
    Check3<u32, u32, u32, u32>(
        (first == 0 ? "dp2a.lo" : "dp2a.hi") + types, [first](u32 a, u32 b, u32 c) {
          s64 sum = c;
          for (int i = 0; i < 2; ++i) {
            sum += s64{static_cast<A16>(a >> 16 * i)} * static_cast<B>(b >> 8 * (first + i));
          }
          return static_cast<u32>(sum);
        });
  }
}
TEST(AluInteger32, DotProducts) {
  CheckDot<u8, u8>(".u32.u32");
  CheckDot<u8, s8>(".u32.s32");
  CheckDot<s8, u8>(".s32.u32");
  CheckDot<s8, s8>(".s32.s32");
}

TEST(AluInteger32, PackedPairs) {
  const auto both = [](u32 a, u32 b, auto f) {
    return static_cast<u32>(static_cast<u16>(f(a & 0xffff, b & 0xffff))) |
           static_cast<u32>(static_cast<u16>(f(a >> 16, b >> 16))) << 16;
  };
  Check2<u32, u32, u32>(
      "add.u16x2", [=](u32 a, u32 b) { return both(a, b, [](u32 x, u32 y) { return x + y; }); });
  Check2<u32, u32, u32>("min.u16x2", [=](u32 a, u32 b) {
    return both(a, b, [](u32 x, u32 y) { return std::min(x, y); });
  });
  Check2<u32, u32, u32>("max.s16x2", [=](u32 a, u32 b) {
    return both(a, b,
                [](u32 x, u32 y) { return std::max(static_cast<s16>(x), static_cast<s16>(y)); });
  });
  Check2<u32, u32, u32>("min.relu.s16x2", [=](u32 a, u32 b) {
    return both(a, b, [](u32 x, u32 y) {
      return std::max<s16>(0, std::min(static_cast<s16>(x), static_cast<s16>(y)));
    });
  });
  Check2<s32, s32, s32>("max.relu.s32", [](s32 a, s32 b) { return std::max(0, std::max(a, b)); });
}

// --- bits ---------------------------------------------------------------------------------------
template <class T>
void CheckLogic() {
  const std::string b = ".b" + std::to_string(kBits<T>);
  Check2<T, T, T>("and" + b, [](T x, T y) { return static_cast<T>(~(~x | ~y)); });
  Check2<T, T, T>("or" + b, [](T x, T y) { return static_cast<T>(~(~x & ~y)); });
  Check2<T, T, T>("xor" + b, [](T x, T y) { return static_cast<T>((x | y) & ~(x & y)); });
  Check1<T, T>("not" + b, [](T x) { return static_cast<T>(T(-1) - x); });
  Check1<T, T>("cnot" + b, [](T x) { return static_cast<T>(x ? 0 : 1); });
}
TEST(AluBits, Logic) {
  CheckLogic<u16>();
  CheckLogic<u32>();
  CheckLogic<u64>();
}
TEST(AluBits, PredicateLogic) {
  Check2<bool, bool, bool>("and.pred", [](bool a, bool b) { return a && b; });
  Check2<bool, bool, bool>("or.pred", [](bool a, bool b) { return a || b; });
  Check2<bool, bool, bool>("xor.pred", [](bool a, bool b) { return a != b; });
  Check1<bool, bool>("not.pred", [](bool a) { return !a; });
  Check1<bool, bool>("mov.pred", [](bool a) { return a; });
  Check("mov.pred %p0, 1;", [](Thread* t) { t->p[0] = true; });
  Check("mov.pred %p0, -1;", [](Thread* t) { t->p[0] = true; });
  Check("mov.pred %p0, 0;", [](Thread* t) { t->p[0] = false; });
}

TEST(AluBits, FunnelShift) {
  for (const bool wrap : {false, true}) {
    const auto count = [wrap](u32 c) { return wrap ? c % 32 : std::min(c, 32u); };
    const std::string mode = wrap ? "wrap" : "clamp";
    Check3<u32, u32, u32, u32>("shf.l." + mode + ".b32", [=](u32 a, u32 b, u32 c) {
      return static_cast<u32>(((u128{b} << 32 | a) << count(c)) >> 32);
    });
    Check3<u32, u32, u32, u32>("shf.r." + mode + ".b32", [=](u32 a, u32 b, u32 c) {
      return static_cast<u32>((u128{b} << 32 | a) >> count(c));
    });
  }
}

TEST(AluBits, Lop3) {
  for (int table = 0; table < 256; ++table) {
    Check(
        "lop3.b32 %r0, %r1, %r2, %r3, " + std::to_string(table) + ";",
        [table](Thread* t) {
          u32 r = 0;
          for (int i = 0; i < 32; ++i) {
            const u64 index =
                (t->r[1] >> i & 1) << 2 | (t->r[2] >> i & 1) << 1 | (t->r[3] >> i & 1);
            r |= static_cast<u32>(table >> index & 1) << i;
          }
          t->r[0] = r;
        },
        32);
    if (HasFatalFailure()) return;
  }
  Check("lop3.or.b32 %r0|%p0, %r1, %r2, %r3, 0x80, !%p1;", [](Thread* t) {
    t->r[0] = t->r[1] & t->r[2] & t->r[3];
    t->p[0] = t->r[0] != 0 || !t->p[1];
  });
  Check("lop3.and.b32 _|%p0, %r1, %r2, %r3, 0xfe, %p1;",
        [](Thread* t) { t->p[0] = (t->r[1] | t->r[2] | t->r[3]) != 0 && t->p[1]; });
}

TEST(AluBits, Prmt) {
  Check3<u32, u32, u32, u32>("prmt.b32", [](u32 a, u32 b, u32 c) {
    const u8 bytes[8] = {u8(a), u8(a >> 8), u8(a >> 16), u8(a >> 24),
                         u8(b), u8(b >> 8), u8(b >> 16), u8(b >> 24)};
    u32 r = 0;
    for (int i = 0; i < 4; ++i) {
      const u32 nibble = c >> 4 * i & 15;
      const u8 v = bytes[nibble & 7];
      r |= u32{nibble >= 8 ? u8(v >= 128 ? 255 : 0) : v} << 8 * i;
    }
    return r;
  });
  // Rows: which bytes of {b, a} the four selectors give, most significant first, as the ISA
  // tabulates.
  const struct {
    const char* mode;
    int bytes[4][4];
  } kModes[] = {{"f4e", {{3, 2, 1, 0}, {4, 3, 2, 1}, {5, 4, 3, 2}, {6, 5, 4, 3}}},
                {"b4e", {{5, 6, 7, 0}, {6, 7, 0, 1}, {7, 0, 1, 2}, {0, 1, 2, 3}}},
                {"rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
                {"ecl", {{3, 2, 1, 0}, {3, 2, 1, 1}, {3, 2, 2, 2}, {3, 3, 3, 3}}},
                {"ecr", {{0, 0, 0, 0}, {1, 1, 1, 0}, {2, 2, 1, 0}, {3, 2, 1, 0}}},
                {"rc16", {{1, 0, 1, 0}, {3, 2, 3, 2}, {1, 0, 1, 0}, {3, 2, 3, 2}}}};
  for (const auto& mode : kModes) {
    Check3<u32, u32, u32, u32>(std::string("prmt.b32.") + mode.mode, [&mode](u32 a, u32 b, u32 c) {
      const u64 all = u64{b} << 32 | a;
      u32 r = 0;
      for (int i = 0; i < 4; ++i)
        r = r << 8 | static_cast<u32>(all >> 8 * mode.bytes[c & 3][i] & 0xff);
      return r;
    });
  }
}

template <class T>
void CheckFields() {
  constexpr u32 kTop = kBits<T> - 1;
  for (const bool is_signed : {false, true}) {
    Check3<T, T, u32, u32>(std::string("bfe.") + (is_signed ? "s" : "u") + std::to_string(kBits<T>),
                           [is_signed](T a, u32 b, u32 c) {
                             const u32 pos = b & 255, len = c & 255;
                             T sign = 0;
                             if (is_signed && len != 0)
                               sign = a >> std::min<u32>(pos + len - 1, u32{kTop}) & 1;
                             T d = 0;
                             for (u32 i = 0; i <= kTop; ++i) {
                               d |= (i < len && pos + i <= kTop ? a >> (pos + i) & 1 : sign) << i;
                             }
                             return d;
                           });
  }
  Check("bfi.b" + std::to_string(kBits<T>) + " " + RegisterName<T>(0) + ", " + RegisterName<T>(1) +
            ", " + RegisterName<T>(2) + ", %r3, %r4;",
        [](Thread* t) {
          const u32 pos = t->r[3] & 255, len = t->r[4] & 255;
          T f = Get<T>(*t, 2);
          for (u32 i = 0; i < len && pos + i <= kTop; ++i) {
            const T bit = T{1} << (pos + i);
            f = (Get<T>(*t, 1) >> i & 1) != 0 ? f | bit : f & ~bit;
          }
          Put<T>(t, f);
        });
  Check1<T, T>("brev.b" + std::to_string(kBits<T>), [](T a) {
    T r = 0;
    for (u32 i = 0; i <= kTop; ++i) r |= (a >> i & 1) << (kTop - i);
    return r;
  });
  Check1<u32, T>("popc.b" + std::to_string(kBits<T>), [](T a) {
    u32 n = 0;
    for (; a != 0; a &= a - 1) ++n;
    return n;
  });
  Check1<u32, T>("clz.b" + std::to_string(kBits<T>), [](T a) {
    u32 n = 0;
    while (n <= kTop && (a >> (kTop - n) & 1) == 0) ++n;
    return n;
  });
  for (const bool shift : {false, true}) {
    for (const bool is_signed : {false, true}) {
      Check1<u32, T>(std::string("bfind") + (shift ? ".shiftamt" : "") + (is_signed ? ".s" : ".u") +
                         std::to_string(kBits<T>),
                     [=](T a) {
                       const T skip = is_signed ? a >> kTop : 0;
                       for (u32 i = kTop + 1; i-- > 0;) {
                         if ((a >> i & 1) != skip) return shift ? kTop - i : i;
                       }
                       return ~0u;
                     });
    }
  }
}
TEST(AluBits, Fields32) { CheckFields<u32>(); }
TEST(AluBits, Fields64) { CheckFields<u64>(); }

TEST(AluBits, FnsBmskSzext) {
  Check("fns.b32 %r0, %r1, %r2, %r3;", [](Thread* t) {
    const u32 mask = static_cast<u32>(t->r[1]), base = static_cast<u32>(t->r[2]);
    const s32 offset = static_cast<s32>(static_cast<u32>(t->r[3]));
    t->r[0] = ~0u;
    if (base > 31) return;
    std::vector<u32> seen;  // set bits from base on, in the direction asked for
    if (offset >= 0) {
      for (u32 i = base; i < 32; ++i)
        if (mask >> i & 1) seen.push_back(i);
    } else {
      for (s32 i = static_cast<s32>(base); i >= 0; --i)
        if (mask >> i & 1) seen.push_back(static_cast<u32>(i));
    }
    if (offset == 0) {
      if (mask >> base & 1) t->r[0] = base;
      return;
    }
    const u64 n = offset > 0 ? static_cast<u64>(offset) : static_cast<u64>(-s64{offset});
    if (n <= seen.size()) t->r[0] = seen[n - 1];
  });
  Check2<u32, u32, u32>("bmsk.clamp.b32", [](u32 a, u32 b) {
    return a >= 32 ? 0u : static_cast<u32>(((u128{1} << std::min(b, 32u)) - 1) << a);
  });
  Check2<u32, u32, u32>("bmsk.wrap.b32", [](u32 a, u32 b) {
    return static_cast<u32>(((u128{1} << (b % 32)) - 1) << (a % 32));
  });
  for (const bool wrap : {false, true}) {
    for (const bool is_signed : {false, true}) {
      Check2<u32, u32, u32>(
          std::string("szext") + (wrap ? ".wrap" : ".clamp") + (is_signed ? ".s32" : ".u32"),
          [=](u32 a, u32 b) {
            const u32 n = wrap ? b % 32 : std::min(b, 32u);
            s128 v = static_cast<s128>(a) & ((s128{1} << n) - 1);
            if (is_signed && n > 0 && (v >> (n - 1) & 1) != 0) v -= s128{1} << n;
            return static_cast<u32>(static_cast<u128>(v));
          });
    }
  }
}

// --- moves --------------------------------------------------------------------------------------
TEST(AluMove, Plain) {
  Check1<u16, u16>("mov.b16", [](u16 a) { return a; });
  Check1<u32, u32>("mov.u32", [](u32 a) { return a; });
  Check1<u32, u32>("mov.f32", [](u32 a) { return a; });
  Check1<u64, u64>("mov.b64", [](u64 a) { return a; });
  Check1<u64, u64>("mov.f64", [](u64 a) { return a; });
  Check("mov.b128 %q0, %q1;", [](Thread* t) {
    t->low[0] = t->low[1];
    t->high[0] = t->high[1];
  });
  Check("mov.u32 %r0, 4294967295;", [](Thread* t) { t->r[0] = 0xffffffff; });
  Check("mov.b64 %rd0, 0x123456789abcdef0;", [](Thread* t) { t->rd[0] = 0x123456789abcdef0; });
  Check("mov.u16 %h0, -1;", [](Thread* t) { t->h[0] = 0xffff; });
  Check("add.s32 %r1, %r1, -7;", [](Thread* t) { t->r[1] = static_cast<u32>(t->r[1] - 7); });
}
TEST(AluMove, PackAndUnpack) {
  Check("mov.b64 %rd0, {%r1, %r2};", [](Thread* t) { t->rd[0] = t->r[1] + (t->r[2] << 32); });
  Check("mov.b32 %r0, {%h1, %h2};", [](Thread* t) { t->r[0] = t->h[1] + (t->h[2] << 16); });
  Check("mov.b64 %rd0, {%h1, %h2, %h3, %h4};", [](Thread* t) {
    t->rd[0] = t->h[1] + (t->h[2] << 16) + (t->h[3] << 32) + (t->h[4] << 48);
  });
  Check("mov.b128 %q0, {%rd1, %rd2};", [](Thread* t) {
    t->low[0] = t->rd[1];
    t->high[0] = t->rd[2];
  });
  Check("mov.b128 %q0, {%r1, %r2, %r3, %r4};", [](Thread* t) {
    t->low[0] = t->r[1] + (t->r[2] << 32);
    t->high[0] = t->r[3] + (t->r[4] << 32);
  });
  Check("mov.b64 {%r1, %r2}, %rd1;", [](Thread* t) {
    t->r[1] = t->rd[1] & 0xffffffff;
    t->r[2] = t->rd[1] >> 32;
  });
  Check("mov.b64 {_, %r2}, %rd1;", [](Thread* t) { t->r[2] = t->rd[1] >> 32; });
  Check("mov.b64 {%r2, _}, %rd1;", [](Thread* t) { t->r[2] = t->rd[1] & 0xffffffff; });
  Check("mov.b32 {%h1, %h2}, %r1;", [](Thread* t) {
    t->h[1] = t->r[1] & 0xffff;
    t->h[2] = t->r[1] >> 16;
  });
  Check("mov.b64 {%h1, %h2, _, %h4}, %rd1;", [](Thread* t) {
    t->h[1] = t->rd[1] & 0xffff;
    t->h[2] = t->rd[1] >> 16 & 0xffff;
    t->h[4] = t->rd[1] >> 48;
  });
  Check("mov.b128 {%rd1, %rd2}, %q1;", [](Thread* t) {
    t->rd[1] = t->low[1];
    t->rd[2] = t->high[1];
  });
  Check("mov.b128 {%r1, %r2, %r3, %r4}, %q1;", [](Thread* t) {
    t->r[1] = t->low[1] & 0xffffffff;
    t->r[2] = t->low[1] >> 32;
    t->r[3] = t->high[1] & 0xffffffff;
    t->r[4] = t->high[1] >> 32;
  });
}
TEST(AluMove, Select) {
  Check("selp.b32 %r0, %r1, %r2, %p1;", [](Thread* t) { t->r[0] = t->p[1] ? t->r[1] : t->r[2]; });
  Check("selp.b64 %rd0, %rd1, %rd2, %p1;",
        [](Thread* t) { t->rd[0] = t->p[1] ? t->rd[1] : t->rd[2]; });
  Check("selp.u16 %h0, %h1, %h2, %p1;", [](Thread* t) { t->h[0] = t->p[1] ? t->h[1] : t->h[2]; });
  Check("selp.f64 %rd0, %rd1, %rd2, %p1;",
        [](Thread* t) { t->rd[0] = t->p[1] ? t->rd[1] : t->rd[2]; });
  Check("selp.u32 %r0, 1, 0, %p1;", [](Thread* t) { t->r[0] = t->p[1] ? 1 : 0; });
  Check("slct.u32.s32 %r0, %r1, %r2, %r3;",
        [](Thread* t) { t->r[0] = t->r[3] < 0x80000000 ? t->r[1] : t->r[2]; });
  Check("slct.b64.f32 %rd0, %rd1, %rd2, %r3;", [](Thread* t) {
    t->rd[0] = As<float>(static_cast<u32>(t->r[3])) >= 0 ? t->rd[1] : t->rd[2];
  });
  Check("slct.ftz.f32.f32 %r0, %r1, %r2, %r3;", [](Thread* t) {
    const u32 c = static_cast<u32>(t->r[3]);
    const bool tiny = (c & 0x7f800000) == 0;
    t->r[0] = tiny || As<float>(c) >= 0 ? t->r[1] : t->r[2];
  });
}
TEST(AluMove, AddressWindows) {
  Check1<u64, u64>("cvta.global.u64", [](u64 a) { return a; });
  Check1<u64, u64>("cvta.to.global.u64", [](u64 a) { return a; });
  Check1<u64, u64>("cvta.to.const.u64", [](u64 a) { return a; });
  Check1<u64, u64>("cvta.shared.u64", [](u64 a) { return a + 0x600000000000; });
  Check1<u64, u64>("cvta.to.shared.u64", [](u64 a) { return a - 0x600000000000; });
  Check1<u64, u64>("cvta.local.u64", [](u64 a) { return a + 0x610000000000; });
  Check1<u64, u64>("cvta.to.local.u64", [](u64 a) { return a - 0x610000000000; });
  Check1<u64, u64>("cvta.param.u64", [](u64 a) { return a + 0x620000000000; });
  const auto within = [](u64 a, u64 base) { return a >= base && a < base + 0x10000000000; };
  Check1<bool, u64>("isspacep.shared", [=](u64 a) { return within(a, 0x600000000000); });
  Check1<bool, u64>("isspacep.local", [=](u64 a) { return within(a, 0x610000000000); });
  Check1<bool, u64>("isspacep.param", [=](u64 a) { return within(a, 0x620000000000); });
  Check1<bool, u64>("isspacep.global",
                    [=](u64 a) { return a < 0x600000000000 || a >= 0x630000000000; });
}

// --- combining comparisons
// -------------------------------------------------------------------------
TEST(AluCompare, CombineAndBothResults) {
  Check("setp.lt.and.s32 %p0|%p2, %r1, %r2, %p1;", [](Thread* t) {
    const bool c = static_cast<s32>(t->r[1]) < static_cast<s32>(t->r[2]);
    t->p[0] = c && t->p[1];
    t->p[2] = !c && t->p[1];
  });
  Check("setp.gt.or.u64 %p0|%p2, %rd1, %rd2, !%p1;", [](Thread* t) {
    const bool c = t->rd[1] > t->rd[2];
    const bool p = !t->p[1];
    t->p[0] = c || p;
    t->p[2] = !c || p;
  });
  Check("setp.ne.xor.b32 %p1, %r1, %r2, %p1;",
        [](Thread* t) { t->p[1] = (t->r[1] != t->r[2]) != t->p[1]; });
  Check("setp.le.u32 _|%p2, %r1, %r2;", [](Thread* t) { t->p[2] = t->r[1] > t->r[2]; });
  Check("set.lt.u32.s32 %r0, %r1, %r2;", [](Thread* t) {
    t->r[0] = static_cast<s32>(t->r[1]) < static_cast<s32>(t->r[2]) ? 0xffffffff : 0;
  });
  Check("set.ge.and.f32.u64 %r0, %rd1, %rd2, %p1;",
        [](Thread* t) { t->r[0] = t->rd[1] >= t->rd[2] && t->p[1] ? 0x3f800000 : 0; });
}

// --- selection ----------------------------------------------------------------------------------
std::vector<std::string> LinesOf(const std::string& name) {
  std::ifstream file(std::string(ALLRANKS_SOURCE_DIR) + "/tests/node/alu/" + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  EXPECT_FALSE(lines.empty()) << name;
  return lines;
}
// Every instruction in accepted.txt (what nvcc emits) has a handler, on each instruction set.
TEST(AluSelect, AcceptsWhatNvccEmits) {
  for (const std::string& line : LinesOf("accepted.txt"))
    EXPECT_TRUE(Machine(line).selected()) << line;
}
// No instruction in refused.txt has: wrong widths, counts and kinds of operands, unknown words.
TEST(AluSelect, RefusesWhatDoesNotFit) {
  for (const std::string& line : LinesOf("refused.txt"))
    EXPECT_FALSE(Machine(line).selected()) << line;
}
TEST(AluSelect, NamesTheInstructionSet) { EXPECT_EQ(AluIsa().substr(0, 8), "x86-64-v"); }

}  // namespace
}  // namespace allranks::node::alu_test
