// f16 and bf16 arithmetic, single and in pairs. Operands are widened; the operation is done in
// float where that cannot round twice in a way that shows (24 bits are twice 11 plus two) or with
// rounding to odd; one rounding to 16 bits follows.
#include <immintrin.h>

// GCC 12 finds its own AVX-512 intrinsics' undefined operands, inlined, uninitialised.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "node/alu/alu_float.h"

namespace allranks::node::alu::ALLRANKS_ISA {
namespace {

struct AddH {
  static float Do(float a, float b) { return a + b; }
};
struct SubH {
  static float Do(float a, float b) { return a - b; }
};
// Products of f16 are exact in float. Those of bf16 may be too small for it.
struct MulF16 {
  static float Do(float a, float b) { return a * b; }
};
struct FmaF16 {
  static float Do(float a, float b, float c) { return AddOdd(a * b, c); }
};
struct MulBf16 {
  static float Do(float a, float b) {
    return ToFloatOdd(static_cast<double>(a) * static_cast<double>(b));
  }
};
struct FmaBf16 {
  static float Do(float a, float b, float c) {
    return ToFloatOdd(
        AddOdd(static_cast<double>(a) * static_cast<double>(b), static_cast<double>(c)));
  }
};

template <class T>
constexpr u16 kOne = 0x3c00;
template <>
constexpr u16 kOne<BF16> = 0x3f80;
template <class T>
constexpr u16 kInfinity = 0x7c00;
template <>
constexpr u16 kInfinity<BF16> = 0x7f80;

// A slot of pairs is 64 consecutive numbers; a slot of single ones is the same with zeros between,
// and zeros give zeros. So one loop does both, in three steps that each vectorise: widen, compute,
// narrow.
constexpr int kHalves = 2 * kLanes;

// (In steps as wide as the loops around them: a wide load waits long for narrow stores.)
template <class T, bool kFlush>
inline void WidenHalves(const u16* h, float* f) {
#if defined(__AVX512BW__)
  if constexpr (__is_same(T, F16)) {
    for (int i = 0; i < kHalves; i += 32) {
      __m512i v = _mm512_load_si512(h + i);
      if constexpr (kFlush) {
        const __mmask32 tiny = _mm512_testn_epi16_mask(v, _mm512_set1_epi16(0x7c00));
        const __m512i sign = _mm512_and_si512(v, _mm512_set1_epi16(-0x8000));
        v = _mm512_mask_mov_epi16(v, tiny, sign);
      }
      _mm512_store_ps(f + i, _mm512_cvtph_ps(_mm512_castsi512_si256(v)));
      _mm512_store_ps(f + i + 16, _mm512_cvtph_ps(_mm512_extracti64x4_epi64(v, 1)));
    }
    return;
  }
#elif defined(__F16C__)
  if constexpr (__is_same(T, F16)) {
    for (int i = 0; i < kHalves; i += 8) {
      __m128i v = _mm_load_si128(static_cast<const __m128i*>(static_cast<const void*>(h + i)));
      if constexpr (kFlush) {
        const __m128i exponent = _mm_and_si128(v, _mm_set1_epi16(0x7c00));
        const __m128i tiny = _mm_cmpeq_epi16(exponent, _mm_setzero_si128());
        v = _mm_andnot_si128(_mm_and_si128(tiny, _mm_set1_epi16(0x7fff)), v);
      }
      _mm256_store_ps(f + i, _mm256_cvtph_ps(v));
    }
    return;
  }
#endif
  for (int i = 0; i < kHalves; ++i) {
    const u32 b = h[i];
    const u32 flushed = b & 0x8000;
    f[i] = T::Load(kFlush && (b & 0x7c00) == 0 ? flushed : b);
  }
}

template <class T>
inline void NarrowHalves(const float* f, u16* h) {
#if defined(__AVX512BW__)
  if constexpr (__is_same(T, F16)) {
    for (int i = 0; i < kHalves; i += 32) {
      const __m256i low = _mm512_cvtps_ph(_mm512_load_ps(f + i), _MM_FROUND_TO_NEAREST_INT);
      const __m256i high = _mm512_cvtps_ph(_mm512_load_ps(f + i + 16), _MM_FROUND_TO_NEAREST_INT);
      _mm512_store_si512(h + i, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
    }
    return;
  }
#elif defined(__F16C__)
  if constexpr (__is_same(T, F16)) {
    for (int i = 0; i < kHalves; i += 16) {
      const __m128i low = _mm256_cvtps_ph(_mm256_load_ps(f + i), _MM_FROUND_TO_NEAREST_INT);
      const __m128i high = _mm256_cvtps_ph(_mm256_load_ps(f + i + 8), _MM_FROUND_TO_NEAREST_INT);
      _mm256_store_si256(static_cast<__m256i*>(static_cast<void*>(h + i)),
                         _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
    }
    return;
  }
#endif
  for (int i = 0; i < kHalves; ++i) h[i] = static_cast<u16>(T::Store(f[i]));
}

template <class T, u32 V>
inline void FinishHalves(u16* h) {
  for (int i = 0; i < kHalves; ++i) {
    u16 r = h[i];
    const u16 magnitude = r & 0x7fff;
    const bool nan = magnitude > kInfinity<T>;
    if ((V & kFtz) != 0) r = (r & 0x7c00) == 0 ? r & 0x8000 : r;
    if ((V & kSat) != 0) {
      r = r > kOne<T> ? kOne<T> : r;
      r = (h[i] & 0x8000) != 0 ? 0 : r;
      r = nan ? 0 : r;
    } else if ((V & kRelu) != 0) {
      r = (r & 0x8000) != 0 ? 0 : r;
      r = nan ? 0x7fff : r;
    } else {
      r = nan ? 0x7fff : r;
    }
    h[i] = r;
  }
}

template <class F, class T, u32 V, int kOperands>
void Halves(const Lanes& lanes, const Op& op, u32 mask) {
  if (mask != kAllLanes) {
    return Partial<u32>(&Halves<F, T, V, kOperands>, lanes, op, mask);
  }
  constexpr bool kFlush = (V & kFtz) != 0;
  alignas(64) float a[kHalves];
  alignas(64) float b[kHalves];
  const u16* ha = Source<u16>(lanes, op.s[0]);
  const u16* hb = Source<u16>(lanes, op.s[1]);
  WidenHalves<T, kFlush>(ha, a);
  WidenHalves<T, kFlush>(hb, b);
  if constexpr (kOperands == 3) {
    alignas(64) float c[kHalves];
    WidenHalves<T, kFlush>(Source<u16>(lanes, op.s[2]), c);
    for (int i = 0; i < kHalves; ++i) a[i] = F::Do(a[i], b[i], c[i]);
  } else {
    for (int i = 0; i < kHalves; ++i) a[i] = F::Do(a[i], b[i]);
  }
  alignas(64) u16 r[kHalves];
  NarrowHalves<T>(a, r);
  FinishHalves<T, V>(r);
  if constexpr ((V & kOob) != 0) {
    for (int i = 0; i < kHalves; ++i) r[i] = ha[i] == kOobNan || hb[i] == kOobNan ? 0 : r[i];
  }
  __builtin_memcpy(Target<u16>(lanes, op.d), r, sizeof r);
}

// Subnormals of both halves become zeros of their sign (an upper half of zeros stays).
template <bool kFlush>
inline u32 FlushHalves(u32 a) {
  if (!kFlush) return a;
  const u32 low = (a & 0x7c00) == 0 ? a & 0x8000 : a & 0xffff;
  const u32 high = (a & 0x7c000000) == 0 ? a & 0x80000000 : a & 0xffff0000;
  return low | high;
}
// Signs of single halves and of pairs.
template <u32 kSigns, bool kFlush>
struct NegH {
  static u32 Do(u32 a) { return FlushHalves<kFlush>(a) ^ kSigns; }
};
template <u32 kSigns, bool kFlush>
struct AbsH {
  static u32 Do(u32 a) { return FlushHalves<kFlush>(a) & ~kSigns; }
};

// On encodings turned into integers that order as the numbers do, -0 below +0. What the variant
// asks for is in masks, so that one loop does for all.
template <bool kIsMaximum>
void ExtremeHalves(const Lanes& lanes, const Op& op, u32 mask) {
  if (mask != kAllLanes) return Partial<u32>(&ExtremeHalves<kIsMaximum>, lanes, op, mask);
  const u16* a = Source<u16>(lanes, op.s[0]);
  const u16* b = Source<u16>(lanes, op.s[1]);
  u16* d = Target<u16>(lanes, op.d);
  const u16 infinity = (op.imm & kImmBf16) != 0 ? 0x7f80 : 0x7c00;
  const u16 of_tiny = (op.imm & kFtz) != 0 ? 0x8000 : 0xffff;
  const u16 of_any = (op.imm & kXorsign) != 0 ? 0x7fff : 0xffff;
  const u16 of_sign = (op.imm & kXorsign) != 0 ? 0x8000 : 0;
  const u16 nan_wins = (op.imm & kNaN) != 0 ? 0xffff : 0;
  const auto order = [](u16 h) {
    return static_cast<s16>(h ^ (static_cast<s16>(h) < 0 ? 0x7fff : 0));
  };
  ALLRANKS_EACH(i, kHalves) {
    const u16 sign = (a[i] ^ b[i]) & of_sign;
    const u16 x = a[i] & of_any & ((a[i] & 0x7c00) == 0 ? of_tiny : 0xffff);
    const u16 y = b[i] & of_any & ((b[i] & 0x7c00) == 0 ? of_tiny : 0xffff);
    const u16 x_nan = (x & 0x7fff) > infinity ? 0xffff : 0,
              y_nan = (y & 0x7fff) > infinity ? 0xffff : 0;
    const bool first = kIsMaximum ? order(x) > order(y) : order(x) < order(y);
    u16 r = first ? x : y;
    r = x_nan != 0 ? y : r;
    r = y_nan != 0 ? x : r;
    const u16 nan = (x_nan & y_nan) | ((x_nan | y_nan) & nan_wins);
    d[i] = nan != 0 ? u16{0x7fff} : static_cast<u16>(r | sign);
  }
}

// Pairs and single halves have the same handler: the zeros above a single one give zeros.
#define BOTH(what, T, v, ...)                                     \
  {Key(AluOp::what, Type::k##T, Type::kNone, v), __VA_ARGS__}, {  \
    Key(AluOp::what, Type::k##T##x2, Type::kNone, v), __VA_ARGS__ \
  }
#define TWO(what, F, T, v) BOTH(what, T, v, &Halves<F, T, v, 2>)
#define FMA(F, T, v) BOTH(kFma, T, v, &Halves<F, T, v, 3>)
#define EACH(what, F)                                                     \
  TWO(what, F, F16, 0), TWO(what, F, F16, kFtz), TWO(what, F, F16, kSat), \
      TWO(what, F, F16, (kFtz | kSat))
#define SIGN(what, F, T, v)                                                              \
  {Key(AluOp::what, Type::k##T, Type::kNone, v), kUnary<F<0x8000, v != 0>, U32>}, {      \
    Key(AluOp::what, Type::k##T##x2, Type::kNone, v), kUnary<F<0x80008000, v != 0>, U32> \
  }

constexpr Entry kEntries[] = {
    EACH(kAdd, AddH),
    EACH(kSub, SubH),
    EACH(kMul, MulF16),
    FMA(FmaF16, F16, 0),
    FMA(FmaF16, F16, kFtz),
    FMA(FmaF16, F16, kSat),
    FMA(FmaF16, F16, (kFtz | kSat)),
    FMA(FmaF16, F16, kRelu),
    FMA(FmaF16, F16, (kFtz | kRelu)),
    FMA(FmaF16, F16, kOob),
    FMA(FmaF16, F16, (kOob | kRelu)),
    TWO(kAdd, AddH, BF16, 0),
    TWO(kSub, SubH, BF16, 0),
    TWO(kMul, MulBf16, BF16, 0),
    FMA(FmaBf16, BF16, 0),
    FMA(FmaBf16, BF16, kRelu),
    FMA(FmaBf16, BF16, kOob),
    FMA(FmaBf16, BF16, (kOob | kRelu)),
    SIGN(kNeg, NegH, F16, 0),
    SIGN(kNeg, NegH, F16, kFtz),
    SIGN(kNeg, NegH, BF16, 0),
    SIGN(kAbs, AbsH, F16, 0),
    SIGN(kAbs, AbsH, F16, kFtz),
    SIGN(kAbs, AbsH, BF16, 0),
    BOTH(kMin, F16, 0, &ExtremeHalves<false>),
    BOTH(kMax, F16, 0, &ExtremeHalves<true>),
};

}  // namespace

Entries HalfEntries() { return MakeEntries(kEntries); }

}  // namespace allranks::node::alu::ALLRANKS_ISA
