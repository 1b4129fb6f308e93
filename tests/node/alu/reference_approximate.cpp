// Models of approximations (see reference.h): what is accepted is any value within the error that
// the PTX ISA documents of the true one, which long double arithmetic gives.
#include <cmath>

#include "alu/formats.h"
#include "alu/reference.h"

namespace allranks::node::alu_test {

namespace {

float Single(u64 v) { return Bits<float>(static_cast<u32>(v)); }

// Units in the last place around `want`, of f32.
long double Unit(long double want) {
  const long double m = std::fabs(want);
  if (m < 0x1p-126L) return 0x1p-149L;
  return std::ldexp(1.0L, std::ilogb(m) - 23);
}

struct Bound {
  long double absolute = 0, relative = 0, units = 0;
};

// Whether an f32 is near enough. Infinities, zeros and NaN must be exact; results that the format
// cannot hold may be either neighbour, and with .ftz subnormal ones are zero.
bool Near(u64 got, long double want, const Bound& bound, bool ftz) {
  if (std::isnan(want)) return got == 0x7fffffff;
  const float g = Single(got);
  if (std::isnan(g)) return false;
  if (std::isinf(want)) return std::isinf(g) && std::signbit(g) == std::signbit(want);
  if (ftz && g != 0 && std::fabs(g) < 0x1p-126f) return false;
  long double allowed = std::fmax(bound.absolute, std::fabs(want) * bound.relative);
  allowed = std::fmax(allowed, bound.units * Unit(want));
  // Below the normal range, half a subnormal unit is what any rounding costs, or all of it.
  if (std::fabs(want) < 0x1p-126L) allowed += ftz ? 0x1p-126L : 0x1p-149L;
  if (std::isinf(g)) return std::fabs(want) + allowed >= 0x1.ffffffp127L;
  return std::fabs(static_cast<long double>(g) - want) <= allowed;
}

bool Unary(const Line& line, Model* model) {
  const std::string& op = line.opcode;
  const bool ftz = line.Has("ftz");
  long double (*f)(long double) = nullptr;
  Bound bound;
  bool lg2 = false, trigonometric = false;
  if (op == "rcp") {  // "maximum error 1 ulp over the full range"
    f = [](long double x) { return 1 / x; };
    bound.units = 1;
  } else if (op == "sqrt") {  // "maximum relative error 2^-23 over the positive finite range"
    f = [](long double x) { return std::sqrt(x); };
    bound.relative = 0x1p-23L;
  } else if (op == "rsqrt") {  // "maximum relative error 2^-22.9"
    f = [](long double x) { return 1 / std::sqrt(x); };
    bound.relative = std::pow(2.0L, -22.9L);
  } else if (op == "ex2") {  // "maximum error 2 ulp over the full range"
    f = [](long double x) { return std::exp2(x); };
    bound.units = 2;
  } else if (op == "tanh") {  // "maximum relative error 2^-11"
    f = [](long double x) { return std::tanh(x); };
    bound.relative = 0x1p-11L;
  } else if (op == "lg2") {
    f = [](long double x) { return std::log2(x); };
    lg2 = true;
  } else if (op == "sin") {
    f = [](long double x) { return std::sin(x); };
    trigonometric = true;
  } else if (op == "cos") {
    f = [](long double x) { return std::cos(x); };
    trigonometric = true;
  } else {
    return false;
  }
  model->accept = [=](const u64* s, u64 got) {
    const float x = ftz ? FlushedSingle(Single(s[0])) : Single(s[0]);
    Bound b = bound;
    // lg2: "absolute error 2^-22 in (0.5, 2), relative 2^-22 elsewhere".
    if (lg2) (x > 0.5f && x < 2 ? b.absolute : b.relative) = 0x1p-22L;
    // sin, cos: "absolute error 2^-20.5 in [-2 pi, 2 pi], 2^-14.7 in [-100 pi, 100 pi]"; none is
    // given beyond.
    if (trigonometric) {
      const float m = std::fabs(x);
      b.absolute = m <= 6.2831855f   ? std::pow(2.0L, -20.5L)
                   : m <= 314.15927f ? std::pow(2.0L, -14.7L)
                                     : 2.0L;
    }
    return Near(got, f(x), b, ftz);
  };
  return true;
}

// Halves: ex2 "maximum relative error 2^-9.9" of f16, 2^-7 of bf16; tanh "maximum absolute error
// 2^-10.987" of f16, 2^-8 of bf16.
bool Halves(const Line& line, const Ty& t, Model* model) {
  const bool exp = line.opcode == "ex2";
  if (!exp && line.opcode != "tanh") return false;
  const bool bf16 = t.kind == 'B', pair = t.count == 2, ftz = line.Has("ftz");
  const Format16& format = bf16 ? kBf16 : kHalf;
  model->accept = [=, &format](const u64* s, u64 got) {
    const auto one = [&](u64 a, u64 g) {
      // .ftz of bf16: subnormals of its range, which is that of f32.
      const bool tiny = ftz && (a & 0x7f80) == 0;
      const long double x =
          tiny ? 0.0L : static_cast<long double>(format.Value(static_cast<u16>(a)));
      if (std::isnan(x)) return g == 0x7fff;
      const long double want = exp ? std::exp2(x) : std::tanh(x);
      const long double value = format.Value(static_cast<u16>(g));
      if (std::isnan(value)) return false;
      if (ftz && (g & 0x7f80) == 0 && (g & 0x7f) != 0) return false;
      if (std::isinf(value) || std::isinf(want)) {
        return want > 0 && (std::isinf(want) || want >= format.Value(bf16 ? 0x7f7f : 0x7bff)) &&
               (value > 0 && (std::isinf(value) || g == (bf16 ? 0x7f7fu : 0x7bffu)));
      }
      const long double smallest = bf16 ? 0x1p-126L : 0x1p-14L;
      long double allowed = exp ? want * std::pow(2.0L, bf16 ? -7.0L : -9.9L)
                                : std::pow(2.0L, bf16 ? -8.0L : -10.987L);
      if (want < smallest && exp) allowed += bf16 ? smallest : 0x1p-24L;
      return std::fabs(value - want) <= allowed;
    };
    if (!pair) return one(s[0], got);
    return one(s[0] & 0xffff, got & 0xffff) && one(s[0] >> 16, got >> 16);
  };
  return true;
}

bool Divide(const Line& line, Model* model) {
  if (line.opcode != "div") return false;
  const bool ftz = line.Has("ftz"), approx = line.Has("approx");
  model->accept = [=](const u64* s, u64 got) {
    const float a = ftz ? FlushedSingle(Single(s[0])) : Single(s[0]);
    const float b = ftz ? FlushedSingle(Single(s[1])) : Single(s[1]);
    const float m = std::fabs(b);
    // "For 2^126 < |b| < 2^128, if a is infinity the result is NaN, otherwise 0."
    if (approx && m > 0x1p126f && !std::isinf(m)) {
      return std::isnan(a) || std::isinf(a) ? got == 0x7fffffff : (got & 0x7fffffff) == 0;
    }
    Bound bound;
    bound.units = 2;  // "maximum error 2 ulp", of div.full over the full range
    return Near(got, static_cast<long double>(a) / b, bound, ftz);
  };
  return true;
}

// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 work on the upper 32 bits: 20 bits of mantissa in and
// out, the lower word of the result is zero. rsqrt.approx.f64 is rsqrt(double), which promises one
// unit in the last place.
bool Double(const Line& line, Model* model) {
  const bool root = line.opcode == "rsqrt", ftz = line.Has("ftz");
  if (!root && line.opcode != "rcp") return false;
  if (!ftz) {
    model->accept = [](const u64* s, u64 got) {
      const double x = Bits<double>(s[0]), g = Bits<double>(got);
      if (std::isnan(x)) return got == (s[0] | u64{1} << 51);
      if (x < 0) return got == 0xfff8000000000000;
      const long double want = 1 / std::sqrt(static_cast<long double>(x));
      if (std::isinf(want)) return std::isinf(g) && std::signbit(g) == std::signbit(want);
      return std::fabs(g - want) <= std::fabs(want) * 0x1p-52L;
    };
    return true;
  }
  model->accept = [=](const u64* s, u64 got) {
    double x = Bits<double>(s[0] & 0xffffffff00000000);
    if (ftz && std::fpclassify(x) == FP_SUBNORMAL) x = std::copysign(0.0, x);
    const long double want =
        root ? 1 / std::sqrt(static_cast<long double>(x)) : 1 / static_cast<long double>(x);
    if (std::isnan(want)) return got == 0x7fffffff00000000;
    if ((got & 0xffffffff) != 0) return false;
    const double g = Bits<double>(got);
    if (std::isinf(want)) return std::isinf(g) && std::signbit(g) == std::signbit(want);
    if (ftz && std::fabs(want) < 0x1p-1022L) return g == 0;
    return std::fabs(g - want) <= std::fabs(want) * 0x1p-20L;
  };
  return true;
}

}  // namespace

bool ApproximateModel(const Line& line, Model* model) {
  if (!line.Has("approx") && !line.Has("full")) return false;
  const Ty t = TypeOf(line.Last());
  if (t.bits == 16) return Halves(line, t, model);
  if (t.bits == 64) return Double(line, model);
  return Divide(line, model) || Unary(line, model);
}

}  // namespace allranks::node::alu_test
