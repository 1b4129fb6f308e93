// Models of cvt (see reference.h): integers in 128 bits, f32 and f64 by the processor's rounding
// modes, all smaller formats by search in the table of their values (formats.h).
#include <cmath>
#include <map>

#include "alu/formats.h"
#include "alu/reference.h"

namespace allranks::node::alu_test {

namespace {

Mode TableMode(const Line& line) {
  return line.Has("rz") || line.Has("rzi")   ? Mode::kZero
         : line.Has("rm") || line.Has("rmi") ? Mode::kDown
         : line.Has("rp") || line.Has("rpi") ? Mode::kUp
         : line.Has("rna")                   ? Mode::kNearestAway
                                             : Mode::kNearest;
}

int BytesOf(const Place& p) { return p.bytes(); }

// A source as a number; every format but u64 fits a double.
double RealOf(u64 v, const Ty& t, bool ftz) {
  if (t.kind == 'B') return kBf16.Value(static_cast<u16>(v));
  if (t.bits == 16) return kHalf.Value(static_cast<u16>(v));
  if (t.bits == 64) return Bits<double>(v);
  const float f = Bits<float>(static_cast<u32>(v));
  return ftz ? FlushedSingle(f) : f;
}

// "NaN results in zero if the source is not .f64 and the destination not .s64 or .u64, otherwise in
// 1 << (BitWidth(dst) - 1)"; out of range is clamped; a signed result is extended to its register.
bool ToInteger(const Line& line, const Ty& to, const Ty& from, Model* model) {
  const int bytes = BytesOf(line.to[0]);
  const bool ftz = line.Has("ftz"), sat = line.Has("sat");
  model->rounding = RoundingOf(line);
  const auto put = [=](s128 v) { return Wrapped(Number(Wrapped(v, to.bits), to), 8 * bytes); };
  if (from.integer()) {
    model->compute = [=](const u64* s, u64* d) {
      const s128 v = Number(s[0], from);
      d[0] = put(sat ? Clamped(v, to.bits, to.is_signed()) : v);
    };
    return true;
  }
  const bool wide = from.bits == 64 || to.bits == 64;
  model->compute = [=](const u64* s, u64* d) {
    const double v = RealOf(s[0], from, ftz);
    if (std::isnan(v)) {
      d[0] = put(wide ? s128{1} << (to.bits - 1) : 0);
      return;
    }
    const double r = std::nearbyint(v), limit = 0x1p100;
    const s128 n = r > limit    ? s128{1} << 100
                   : r < -limit ? -(s128{1} << 100)
                                : static_cast<s128>(r);
    d[0] = put(Clamped(n, to.bits, to.is_signed()));
  };
  return true;
}

u64 RoundTo16(const Format16& format, quad v, bool negative_zero, Mode mode, bool satfinite) {
  if (v == 0) return negative_zero ? 0x8000 : 0;
  return format.Round(v, mode, satfinite);
}

// f32 and f64 results: the host converts in the rounding mode in force. Sources wider than a double
// are 64-bit integers, which a long double holds.
bool ToFloat(const Line& line, const Ty& to, const Ty& from, Model* model) {
  const bool ftz = line.Has("ftz"), sat = line.Has("sat"), relu = line.Has("relu");
  const bool satfinite = line.Has("satfinite");
  const bool integral = line.Has("rni") || line.Has("rzi") || line.Has("rmi") || line.Has("rpi");
  const Mode mode = TableMode(line);
  const int rounding = RoundingOf(line);
  const Format16* format = to.bits != 16 ? nullptr : to.kind == 'B' ? &kBf16 : &kHalf;
  model->rounding = RoundingOf(line);
  // Without words, a conversion to the same format changes nothing, whatever the bits.
  const bool same = to.kind == from.kind && to.bits == from.bits;
  if (same && !integral && !ftz && !sat) {
    model->compute = [](const u64* s, u64* d) { d[0] = s[0]; };
    return true;
  }
  model->compute = [=](const u64* s, u64* d) {
    long double v = 0;
    if (from.integer()) {
      const s128 n = Number(s[0], from);
      v = n < 0 ? -static_cast<long double>(static_cast<u64>(-n))
                : static_cast<long double>(static_cast<u64>(n));
    } else {
      v = RealOf(s[0], from, ftz);
    }
    const bool nan = v != v;
    if (integral && !nan) v = std::nearbyint(static_cast<double>(v));
    if (sat) v = !(v > 0) ? 0.0L : v > 1 ? 1.0L : v;
    if (relu && !nan && (v < 0 || std::signbit(v))) v = 0.0L;
    if (format != nullptr) {
      d[0] = nan && !sat
                 ? 0x7fff
                 : RoundTo16(*format, static_cast<quad>(v), std::signbit(v), mode, satfinite);
    } else if (to.bits == 32) {
      if (same && nan && !sat) {
        d[0] = integral ? 0x7fffffff : s[0];  // plain copies with .ftz keep a NaN's bits
        return;
      }
      float f = static_cast<float>(v);
      if (ftz && TinySingle(v, rounding)) f = std::copysign(0.0f, f);
      d[0] = SingleResult(f);
    } else if (nan && !sat) {
      // f64 keeps the payload of an f64 or f32; of halves, whose NaN is one, all ones.
      d[0] = from.bits == 64   ? s[0] | u64{1} << 51
             : from.bits == 32 ? Bits<u64>(static_cast<double>(Bits<float>(static_cast<u32>(s[0]))))
                               : 0x7fffffffffffffff;
    } else {
      d[0] = Bits<u64>(static_cast<double>(v));
    }
  };
  return true;
}

// Ten bits of mantissa in the upper bits of an f32.
bool ToTf32(const Line& line, Model* model) {
  const bool relu = line.Has("relu"), satfinite = line.Has("satfinite");
  const Mode mode = TableMode(line);
  model->compute = [=](const u64* s, u64* d) {
    const u64 sign = s[0] & 0x80000000, m = s[0] & 0x7fffffff;
    if (m > 0x7f800000) {
      d[0] = 0x7fffe000;
      return;
    }
    // Half a unit, less one where a tie goes to even; carries run into the exponent.
    const u64 add = mode == Mode::kNearestAway ? 0x1000
                    : mode == Mode::kNearest   ? 0xfff + (m >> 13 & 1)
                                               : 0;
    u64 r = m == 0x7f800000 ? m : (m + add) & ~u64{0x1fff};
    if (satfinite && r >= 0x7f800000) r = 0x7f7fe000;
    d[0] = relu && sign != 0 ? 0 : r | sign;
  };
  return true;
}

}  // namespace

bool ConvertModel(const Line& line, Model* model) {
  if (line.opcode != "cvt") return false;
  if (line.words[0] == "pack") {
    const Ty to = TypeOf(line.words[2]);
    model->compute = [=, third = line.from.size() == 3](const u64* s, u64* d) {
      const auto part = [&](u64 v) {
        return Wrapped(Clamped(Number(v, 32, true), to.bits, to.is_signed()), to.bits);
      };
      d[0] =
          (part(s[0]) << to.bits | part(s[1]) | (third ? s[2] << (2 * to.bits) : 0)) & 0xffffffff;
    };
    return true;
  }
  if (line.Last(1) == "tf32") return ToTf32(line, model);
  const Ty to = TypeOf(line.Last(1)), from = TypeOf(line.Last());
  static const std::string kKinds = "usfB";
  if (kKinds.find(to.kind) == std::string::npos || kKinds.find(from.kind) == std::string::npos ||
      to.bits == 0 || from.bits == 0 || from.count != 1 || line.Last(1)[0] == 'e' ||
      line.Last(1).substr(0, 2) == "ue" || line.Last().substr(0, 2) == "ue") {
    return false;
  }
  if (to.count == 2) {  // two f32, the first to the upper half
    if (line.Has("rs")) return false;
    const Format16& format = to.kind == 'B' ? kBf16 : kHalf;
    const Mode mode = TableMode(line);
    const bool relu = line.Has("relu"), satfinite = line.Has("satfinite");
    model->compute = [=, &format](const u64* s, u64* d) {
      const auto half = [&](u64 e) -> u64 {
        const double v = Bits<float>(static_cast<u32>(e));
        if (relu && !std::isnan(v) && std::signbit(v)) return 0;
        return std::isnan(v) ? 0x7fff : RoundTo16(format, v, std::signbit(v), mode, satfinite);
      };
      d[0] = half(s[0]) << 16 | half(s[1]);
    };
    return true;
  }
  return to.integer() ? ToInteger(line, to, from, model) : ToFloat(line, to, from, model);
}

namespace {

struct SmallFormat {
  const char* name;
  int bits;
  Format16 format;
  bool has_nan;
};
const std::vector<SmallFormat>& SmallFormats() {
  using Top = Format16::Top;
  static const std::vector<SmallFormat> kFormats = {
      {"e4m3", 8, Format16(3, 4, Top::kOneNan), true},
      {"e5m2", 8, Format16(2, 5), true},
      {"e2m3", 8, Format16(3, 2, Top::kNumbers), false},
      {"e3m2", 8, Format16(2, 3, Top::kNumbers), false},
      {"e2m1", 4, Format16(1, 2, Top::kNumbers), false}};
  return kFormats;
}
const SmallFormat* SmallFormatOf(const std::string& word) {
  for (const SmallFormat& f : SmallFormats()) {
    if (word.substr(0, 4) == f.name) return &f;
  }
  return nullptr;
}

// .satfinite: "NaN is converted to NaN where the format has one, else to positive MAX_NORM".
u64 ToSmall(const SmallFormat& f, double v, bool relu) {
  if (std::isnan(v)) {
    return f.has_nan ? f.format.Round(v, Mode::kNearest) : static_cast<u64>(f.format.Largest());
  }
  if (relu && std::signbit(v)) return 0;
  if (v == 0) return std::signbit(v) ? f.format.SignBit() : 0;
  return f.format.Round(v, Mode::kNearest, true);
}

// Stochastic rounding: the bits cut off plus the random ones, aligned at their top, carry or not.
// By exact division of the distance to the next lower value, in 128-bit floats.
u64 Stochastic(const Format16& format, double v, u64 random, int count, bool relu, bool satfinite,
               bool has_nan) {
  if (std::isnan(v)) return has_nan ? format.Round(v, Mode::kNearest) : format.Largest();
  if (relu && std::signbit(v)) return 0;
  const u64 sign = std::signbit(v) ? format.SignBit() : 0;
  const double m = std::fabs(v);
  if (m == 0) return sign;
  const u64 low = format.Round(m, Mode::kZero, true);  // never infinite: the largest, if beyond
  const quad below = format.Value(static_cast<u16>(low));
  if (std::isinf(m)) return sign | (satfinite ? low : format.Round(m, Mode::kNearest));
  const bool last = low == format.Largest();
  const quad step = last ? below - static_cast<quad>(format.Value(static_cast<u16>(low - 1)))
                         : static_cast<quad>(format.Value(static_cast<u16>(low + 1))) - below;
  const quad rest = (static_cast<quad>(m) - below) / step;  // exact: steps are powers of two
  const quad carry = rest + static_cast<quad>(static_cast<double>(random)) /
                                static_cast<quad>(std::ldexp(1.0, count));
  const bool up = carry >= 1;
  if (last && rest >= 1) return sign | (satfinite ? low : format.Round(INFINITY, Mode::kNearest));
  return sign | (!up ? low : last && satfinite ? low : low + 1);
}

// ue8m0: the exponent alone, of the magnitude, as the toolkit's own host conversion has it.
u64 ToScale(float v, bool up, bool satfinite) {
  if (std::isnan(v)) return 0xff;
  const float m = std::fabs(v);
  if (std::isinf(m)) return satfinite ? 0xfe : 0xff;
  if (m <= 0x1p-127f) return 0;
  int e = 0;
  const float fraction = std::frexp(m, &e);  // in [1/2, 1)
  const int exponent = e - 1 + 127 + (up && fraction != 0.5f ? 1 : 0);
  return exponent < 0      ? 0
         : exponent > 0xfe ? (satfinite ? 0xfe : 0xff)
                           : static_cast<u64>(exponent);
}

float SingleOf(u64 v) { return Bits<float>(static_cast<u32>(v)); }

bool ScaleModel(const Line& line, Model* model) {
  const bool up = line.Has("rp"), satfinite = line.Has("satfinite");
  if (line.Last() == "ue8m0x2") {
    model->compute = [](const u64* s, u64* d) {
      const auto half = [](u64 e) -> u64 {
        return e == 0xff ? 0x7fff
                         : kBf16.Round(std::ldexp(1.0, static_cast<int>(e) - 127), Mode::kNearest);
      };
      d[0] = half(s[0] >> 8) << 16 | half(s[0] & 0xff);
    };
    return true;
  }
  if (line.Last(1) != "ue8m0x2") return false;
  if (line.Last() == "f32") {
    model->compute = [=](const u64* s, u64* d) {
      d[0] = ToScale(SingleOf(s[0]), up, satfinite) << 8 | ToScale(SingleOf(s[1]), up, satfinite);
    };
  } else {
    model->compute = [=](const u64* s, u64* d) {
      d[0] = ToScale(SingleOf(s[0] & 0xffff0000), up, satfinite) << 8 |
             ToScale(SingleOf(s[0] << 16 & 0xffff0000), up, satfinite);
    };
  }
  return true;
}

}  // namespace

bool SmallFloatModel(const Line& line, Model* model) {
  if (line.opcode != "cvt" || line.words.size() < 3) return false;
  if (ScaleModel(line, model)) return true;
  const bool relu = line.Has("relu"), satfinite = line.Has("satfinite");
  if (line.Has("rs") && (line.Last(1) == "f16x2" || line.Last(1) == "bf16x2")) {
    // "13 LSBs of either half of rbits" for f16, all 16 for bf16; the upper half is a's.
    const bool bf16 = line.Last(1) == "bf16x2";
    const Format16& format = bf16 ? kBf16 : kHalf;
    const int count = bf16 ? 16 : 13;
    model->compute = [=, &format](const u64* s, u64* d) {
      const auto half = [&](u64 e, u64 r) {
        return Stochastic(format, SingleOf(e), r & Mask(count), count, relu, satfinite, true);
      };
      d[0] = half(s[0], s[2] >> 16) << 16 | half(s[1], s[2]);
    };
    return true;
  }
  if (const SmallFormat* from = SmallFormatOf(line.Last())) {
    model->compute = [=](const u64* s, u64* d) {
      const auto half = [&](u64 e) -> u64 {
        const double v = from->format.Value(static_cast<u16>(e & Mask(from->bits)));
        if (std::isnan(v)) return 0x7fff;
        if (relu && std::signbit(v)) return 0;
        return RoundTo16(kHalf, v, std::signbit(v), Mode::kNearest, false);
      };
      d[0] = half(s[0] >> from->bits) << 16 | half(s[0]);
    };
    return true;
  }
  const SmallFormat* to = SmallFormatOf(line.Last(1));
  if (to == nullptr) return false;
  if (line.Has("rs")) {
    // Of bytes, "the upper 16 bits of rbits are used for a and b, the lower for e and f"; of
    // nibbles, the upper bytes of either half for a and b, the lower ones for e and f.
    model->compute = [=](const u64* s, u64* d) {
      const u64 r = s[4], byte[4] = {r >> 24, r >> 8, r >> 16, r};
      d[0] = 0;
      for (int i = 0; i < 4; ++i) {
        const u64 bits = to->bits == 4 ? byte[i] & 0xff : (i < 2 ? r >> 16 : r) & 0xffff;
        d[0] = d[0] << to->bits | Stochastic(to->format, SingleOf(s[i]), bits,
                                             to->bits == 4 ? 8 : 16, relu, true, to->has_nan);
      }
    };
  } else if (line.Last() == "f32") {
    model->compute = [=](const u64* s, u64* d) {
      d[0] = ToSmall(*to, SingleOf(s[0]), relu) << to->bits | ToSmall(*to, SingleOf(s[1]), relu);
    };
  } else {
    model->compute = [=](const u64* s, u64* d) {
      d[0] = ToSmall(*to, kHalf.Value(static_cast<u16>(s[0] >> 16)), relu) << to->bits |
             ToSmall(*to, kHalf.Value(static_cast<u16>(s[0])), relu);
    };
  }
  return true;
}

}  // namespace allranks::node::alu_test
