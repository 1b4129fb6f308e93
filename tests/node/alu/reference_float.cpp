// Models of f32, f64, f16 and bf16 arithmetic (see reference.h): the processor's own operations in
// the rounding mode asked for, and for halves 128-bit floats with one rounding at the end.
#include <cmath>

#include "alu/formats.h"
#include "alu/reference.h"

namespace allranks::node::alu_test {

namespace {

enum class Op { kAdd, kSub, kMul, kFma, kDiv, kRcp, kSqrt, kNone };
Op OpOf(const std::string& opcode) {
  if (opcode == "add") return Op::kAdd;
  if (opcode == "sub") return Op::kSub;
  if (opcode == "mul") return Op::kMul;
  if (opcode == "fma" || opcode == "mad") return Op::kFma;
  if (opcode == "div") return Op::kDiv;
  if (opcode == "rcp") return Op::kRcp;
  if (opcode == "sqrt") return Op::kSqrt;
  return Op::kNone;
}

template <class T>
T Computed(Op op, T a, T b, T c) {
  switch (op) {
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
      return a * b;
    case Op::kFma:
      return std::fma(a, b, c);
    case Op::kDiv:
      return a / b;
    case Op::kRcp:
      return T{1} / a;
    default:
      return std::sqrt(a);
  }
}

float Single(u64 v) { return Bits<float>(static_cast<u32>(v)); }

// f64: "NaN payloads are those of an operand where there is one", the first; else the indefinite.
u64 DoubleResult(double r, const u64* s, int operands) {
  if (r == r) return Bits<u64>(r);
  for (int i = 0; i < operands; ++i) {
    if (std::isnan(Bits<double>(s[i]))) return s[i] | u64{1} << 51;
  }
  return 0xfff8000000000000;
}

bool Arithmetic(const Line& line, const Ty& t, Model* model) {
  const Op op = OpOf(line.opcode);
  if (op == Op::kNone || line.Has("approx") || line.Has("full")) return false;
  const bool ftz = line.Has("ftz"), sat = line.Has("sat");
  const int operands = static_cast<int>(line.from.size());
  model->rounding = RoundingOf(line);
  if (t.bits == 64) {
    model->compute = [=](const u64* s, u64* d) {
      const auto in = [&](int i) { return i < operands ? Bits<double>(s[i]) : 0.0; };
      d[0] = DoubleResult(Computed(op, in(0), in(1), in(2)), s, operands);
    };
    return true;
  }
  const int rounding = RoundingOf(line);
  const auto one = [=](float a, float b, float c) -> u64 {
    if (ftz) {
      a = FlushedSingle(a);
      b = FlushedSingle(b);
      c = FlushedSingle(c);
    }
    float r = Computed(op, a, b, c);
    if (ftz && std::fabs(r) <= 0x1p-126f) {
      const quad x = a, y = b;
      const quad exact = op == Op::kMul   ? x * y
                         : op == Op::kFma ? AddOdd(x * y, static_cast<quad>(c))
                         : op == Op::kDiv ? x / y
                         : op == Op::kRcp ? 1 / x
                         : op == Op::kAdd ? x + y
                         : op == Op::kSub ? x - y
                                          : static_cast<quad>(r);
      if (TinySingle(exact, rounding)) r = std::copysign(0.0f, r);
    }
    return SingleResult(sat ? SaturatedSingle(r) : r);
  };
  if (t.count == 2) {
    model->compute = [=](const u64* s, u64* d) {
      const u64 c = operands == 3 ? s[2] : 0;
      d[0] = one(Single(s[0]), Single(s[1]), Single(c)) |
             one(Single(s[0] >> 32), Single(s[1] >> 32), Single(c >> 32)) << 32;
    };
  } else {
    model->compute = [=](const u64* s, u64* d) {
      const auto in = [&](int i) { return i < operands ? Single(s[i]) : 0.0f; };
      d[0] = one(in(0), in(1), in(2));
    };
  }
  return true;
}

// f32 from halves: widening is exact.
bool Mixed(const Line& line, Model* model) {
  if (line.words.size() < 2 || line.Last(1) != "f32") return false;
  const Op op = OpOf(line.opcode);
  if (op == Op::kNone) return false;
  const bool sat = line.Has("sat"), three = op == Op::kFma;
  const Format16& format = line.Last() == "f16" ? kHalf : kBf16;
  model->rounding = RoundingOf(line);
  model->compute = [=, &format](const u64* s, u64* d) {
    const float a = static_cast<float>(format.Value(static_cast<u16>(s[0])));
    const float b = three ? static_cast<float>(format.Value(static_cast<u16>(s[1]))) : Single(s[1]);
    const float r = Computed(op, a, b, three ? Single(s[2]) : 0.0f);
    d[0] = SingleResult(sat ? SaturatedSingle(r) : r);
  };
  return true;
}

// The ISA: "+0.0 > -0.0"; a NaN gives way to a number unless .NaN; two NaNs are the canonical one.
double ExtremeOf(double a, double b, bool maximum, bool nan) {
  if (std::isnan(a) || std::isnan(b)) {
    if (nan || (std::isnan(a) && std::isnan(b))) return NAN;
    return std::isnan(a) ? b : a;
  }
  if (a == 0 && b == 0) {
    const bool negative =
        maximum ? std::signbit(a) && std::signbit(b) : std::signbit(a) || std::signbit(b);
    return negative ? -0.0 : 0.0;
  }
  return (a < b) == maximum ? b : a;
}

bool Extreme(const Line& line, const Ty& t, Model* model) {
  if (line.opcode != "min" && line.opcode != "max") return false;
  const bool maximum = line.opcode == "max", nan = line.Has("NaN"), ftz = line.Has("ftz");
  const bool xorsign = line.Has("xorsign"), abs = line.Has("abs");
  const bool three = line.from.size() == 3;
  const Format16& format = t.kind == 'B' ? kBf16 : kHalf;
  // Of values as doubles, which hold all the other formats.
  const auto combine = [=](double a, double b, double c) {
    const bool negative = std::signbit(a) != std::signbit(b);
    double r =
        abs ? ExtremeOf(std::fabs(a), std::fabs(b), maximum, nan) : ExtremeOf(a, b, maximum, nan);
    if (three) r = ExtremeOf(r, abs ? std::fabs(c) : c, maximum, nan);
    return xorsign && !std::isnan(r) && negative ? -r : r;
  };
  if (t.bits == 64) {
    model->compute = [=](const u64* s, u64* d) {
      const double r = combine(Bits<double>(s[0]), Bits<double>(s[1]), 0);
      d[0] = DoubleResult(r, s, 2);
    };
  } else if (t.bits == 32) {
    model->compute = [=](const u64* s, u64* d) {
      const auto in = [&](int i) { return ftz ? FlushedSingle(Single(s[i])) : Single(s[i]); };
      // The sign of a NaN counts for .xorsign of the other operand: it is lost in a double.
      const u64 sign = xorsign ? (s[0] ^ s[1]) & 0x80000000 : 0;
      const double r = combine(in(0), in(1), three ? in(2) : 0.0f);
      u64 bits = SingleResult(static_cast<float>(r));
      if (xorsign && bits != 0x7fffffff) bits = (bits & 0x7fffffff) | sign;
      d[0] = bits;
    };
  } else {
    const auto one = [=, &format](u64 a, u64 b, u64) -> u64 {
      const auto in = [&](u64 v) {
        const u16 h = static_cast<u16>(v);
        return format.Value(ftz ? format.Flushed(h) : h);
      };
      const double r = combine(in(a), in(b), 0);
      if (std::isnan(r)) return 0x7fff;
      const u64 bits = r == 0 ? (std::signbit(r) ? 0x8000 : 0) : format.Round(r, Mode::kNearest);
      return xorsign ? (bits & 0x7fff) | ((a ^ b) & 0x8000) : bits;
    };
    if (t.count == 2) {
      model->compute = [=](const u64* s, u64* d) { d[0] = BothHalves(one, s[0], s[1]); };
    } else {
      model->compute = [=](const u64* s, u64* d) { d[0] = one(s[0], s[1], 0); };
    }
  }
  return true;
}

// Signs are changed without looking at the value; .ftz flushes before.
bool Signs(const Line& line, const Ty& t, Model* model) {
  const std::string& op = line.opcode;
  if (op != "abs" && op != "neg" && op != "copysign") return false;
  const bool ftz = line.Has("ftz");
  u64 sign = u64{1} << (t.bits - 1);
  if (t.count == 2) sign |= sign << 16;
  if (op == "copysign") {  // the magnitude of b with the sign of a
    model->compute = [=](const u64* s, u64* d) { d[0] = (s[0] & sign) | (s[1] & ~sign); };
    return true;
  }
  model->compute = [=, negate = op == "neg"](const u64* s, u64* d) {
    u64 v = s[0];
    if (ftz && t.bits == 32) v = Bits<u32>(FlushedSingle(Single(v)));
    if (ftz && t.bits == 16) {
      const auto flush = [](u64 h, u64, u64) -> u64 { return kHalf.Flushed(static_cast<u16>(h)); };
      v = BothHalves(flush, v);
    }
    d[0] = negate ? v ^ sign : v & ~sign;
  };
  return true;
}

bool Test(const Line& line, const Ty& t, Model* model) {
  if (line.opcode != "testp") return false;
  const std::string& word = line.words[0];
  const int want = word == "infinite"     ? FP_INFINITE
                   : word == "notanumber" ? FP_NAN
                   : word == "normal"     ? FP_NORMAL
                   : word == "subnormal"  ? FP_SUBNORMAL
                                          : -1;
  model->compute = [=, number = word == "number", finite = word == "finite"](const u64* s, u64* d) {
    const int c =
        t.bits == 64 ? std::fpclassify(Bits<double>(s[0])) : std::fpclassify(Single(s[0]));
    d[0] = number || finite ? c != FP_NAN && !(finite && c == FP_INFINITE) : c == want;
  };
  return true;
}

}  // namespace

bool FloatModel(const Line& line, Model* model) {
  if (line.words.empty()) return false;
  const Ty t = TypeOf(line.Last());
  if (t.kind != 'f' && t.kind != 'B') return false;
  const std::string& op = line.opcode;
  if (op == "cvt" || op == "set" || op == "setp" || op == "mov") return false;
  if (Mixed(line, model)) return true;
  if (Extreme(line, t, model) || Signs(line, t, model) || Test(line, t, model)) return true;
  return t.bits != 16 && Arithmetic(line, t, model);
}

bool HalfModel(const Line& line, Model* model) {
  if (line.words.empty()) return false;
  const Ty t = TypeOf(line.Last());
  const Op op = OpOf(line.opcode);
  if ((t.kind != 'f' && t.kind != 'B') || t.bits != 16 || op == Op::kNone) return false;
  if (line.words.size() > 1 && line.Last(1) == "f32") return false;
  const Format16& format = t.kind == 'B' ? kBf16 : kHalf;
  const bool ftz = line.Has("ftz"), sat = line.Has("sat"), relu = line.Has("relu");
  const bool oob = line.Has("oob"), three = line.from.size() == 3;
  const auto one = [=, &format](u64 a, u64 b, u64 c) -> u64 {
    // A special NaN marks elements outside of a tensor; a product with one is to vanish.
    if (oob && (a == 0xffff || b == 0xffff)) return 0;
    const auto in = [&](u64 v) {
      const u16 h = static_cast<u16>(v);
      return static_cast<quad>(format.Value(ftz ? format.Flushed(h) : h));
    };
    const quad x = in(a), y = in(b), z = three ? in(c) : 0;
    const quad exact = op == Op::kAdd   ? AddOdd(x, y)
                       : op == Op::kSub ? AddOdd(x, -y)
                       : op == Op::kMul ? x * y
                                        : AddOdd(x * y, z);
    u16 r = format.Round(exact, Mode::kNearest);
    // The sign of an exact zero is the processor's.
    if (exact == 0) r = std::signbit(static_cast<double>(exact)) ? 0x8000 : 0;
    if (ftz) r = format.Flushed(r);
    if (sat) {
      const u16 top = format.Round(1, Mode::kNearest);
      return format.IsNan(r) || (r & 0x8000) != 0 ? 0 : r > top ? top : r;
    }
    return relu && (r & 0x8000) != 0 && !format.IsNan(r) ? 0 : r;
  };
  if (t.count == 2) {
    model->compute = [=](const u64* s, u64* d) {
      d[0] = BothHalves(one, s[0], s[1], three ? s[2] : 0);
    };
  } else {
    model->compute = [=](const u64* s, u64* d) { d[0] = one(s[0], s[1], three ? s[2] : 0); };
  }
  return true;
}

}  // namespace allranks::node::alu_test
