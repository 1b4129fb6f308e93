// f16 and bf16 arithmetic, single and in pairs. Operands are widened; the operation is done in
// float where that cannot round twice in a way that shows (24 bits are twice 11 plus two) or with
// rounding to odd; one rounding to 16 bits follows.
#include <immintrin.h>

// GCC 12 finds its own AVX-512 intrinsics' undefined operands, inlined, uninitialised.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "node/alu_float.h"

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

template <class F, class T, u32 V, int kOperands, bool kPairs>
void Halves(const Lanes& lanes, const Op& op, u32 mask) {
  if (mask != kAllLanes) {
    return Partial<u32>(&Halves<F, T, V, kOperands, kPairs>, lanes, op, mask);
  }
  constexpr bool kFlush = (V & kFtz) != 0;
  alignas(64) float a[kHalves];
  alignas(64) float b[kHalves];
  WidenHalves<T, kFlush>(Source<u16>(lanes, op.s[0]), a);
  WidenHalves<T, kFlush>(Source<u16>(lanes, op.s[1]), b);
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
  if constexpr (!kPairs) {
    for (int l = 0; l < kLanes; ++l) r[2 * l + 1] = 0;
  }
  __builtin_memcpy(Target<u16>(lanes, op.d), r, sizeof r);
}

template <class T, u32 V>
struct NegH {
  static u32 Do(u32 a) {
    a &= 0xffff;
    if ((V & kFtz) != 0) a = (a & 0x7c00) == 0 ? a & 0x8000 : a;
    return a ^ 0x8000;
  }
};
template <class T, u32 V>
struct AbsH {
  static u32 Do(u32 a) {
    a &= 0x7fff;
    if ((V & kFtz) != 0) a = (a & 0x7c00) == 0 ? 0 : a;
    return a;
  }
};

// On encodings turned into integers that order as the numbers do, -0 below +0.
template <class T, u32 V, bool kMaximum>
struct ExtremeH {
  static u32 Do(u32 a, u32 b) {
    a &= 0xffff;
    b &= 0xffff;
    if ((V & kFtz) != 0) {
      a = (a & 0x7c00) == 0 ? a & 0x8000 : a;
      b = (b & 0x7c00) == 0 ? b & 0x8000 : b;
    }
    const u32 sign = (a ^ b) & 0x8000;
    if ((V & kXorsign) != 0) {
      a &= 0x7fff;
      b &= 0x7fff;
    }
    const bool a_nan = (a & 0x7fff) > kInfinity<T>, b_nan = (b & 0x7fff) > kInfinity<T>;
    const s32 x = Order(a), y = Order(b);
    u32 r = (kMaximum ? x > y : x < y) ? a : b;
    bool nan = a_nan && b_nan;
    if ((V & kNaN) != 0) {
      nan = a_nan || b_nan;
    } else {
      r = a_nan ? b : b_nan ? a : r;
    }
    if ((V & kXorsign) != 0) r |= sign;
    return nan ? 0x7fff : r;
  }
  static u32 Do(u32 a, u32 b, u32 c) { return Do(Do(a, b), c); }
  static s32 Order(u32 h) {
    const s32 magnitude = static_cast<s32>(h & 0x7fff);
    return (h & 0x8000) != 0 ? -magnitude - 1 : magnitude;
  }
};

template <class F>
struct Pair {
  static u32 Do(u32 a) { return F::Do(a) | F::Do(a >> 16) << 16; }
  static u32 Do(u32 a, u32 b) { return F::Do(a, b) | F::Do(a >> 16, b >> 16) << 16; }
  static u32 Do(u32 a, u32 b, u32 c) {
    return F::Do(a, b, c) | F::Do(a >> 16, b >> 16, c >> 16) << 16;
  }
};

#define H2(what, F, v)                                                           \
  {Key(What::what, Type::kF16, Type::kNone, v), &Halves<F, F16, v, 2, false>}, { \
    Key(What::what, Type::kF16x2, Type::kNone, v), &Halves<F, F16, v, 2, true>   \
  }
#define H3(v)                                                                         \
  {Key(What::kFma, Type::kF16, Type::kNone, v), &Halves<FmaF16, F16, v, 3, false>}, { \
    Key(What::kFma, Type::kF16x2, Type::kNone, v), &Halves<FmaF16, F16, v, 3, true>   \
  }
#define B2(what, F)                                                \
  {Key(What::what, Type::kBF16), &Halves<F, BF16, 0, 2, false>}, { \
    Key(What::what, Type::kBF16x2), &Halves<F, BF16, 0, 2, true>   \
  }
#define B3(v)                                                                            \
  {Key(What::kFma, Type::kBF16, Type::kNone, v), &Halves<FmaBf16, BF16, v, 3, false>}, { \
    Key(What::kFma, Type::kBF16x2, Type::kNone, v), &Halves<FmaBf16, BF16, v, 3, true>   \
  }
#define EACH(what, F) \
  H2(what, F, 0), H2(what, F, kFtz), H2(what, F, kSat), H2(what, F, (kFtz | kSat))
#define ONE1(what, F, T, v)                                                     \
  {Key(What::what, Type::k##T, Type::kNone, v), kUnary<F<T, v>, U32>}, {        \
    Key(What::what, Type::k##T##x2, Type::kNone, v), kUnary<Pair<F<T, v>>, U32> \
  }
#define EXTREME1(T, v, what, three, kMaximum)                                                    \
  {Key(What::what, Type::k##T, Type::kNone, v), kBinary<ExtremeH<T, v, kMaximum>, U32>},         \
      {Key(What::what, Type::k##T##x2, Type::kNone, v),                                          \
       kBinary<Pair<ExtremeH<T, v, kMaximum>>, U32>},                                            \
      {Key(What::three, Type::k##T, Type::kNone, v), kTernary<ExtremeH<T, v, kMaximum>, U32>}, { \
    Key(What::three, Type::k##T##x2, Type::kNone, v),                                            \
        kTernary<Pair<ExtremeH<T, v, kMaximum>>, U32>                                            \
  }
#define EXTREME(T, v) EXTREME1(T, v, kMin, kMin3, false), EXTREME1(T, v, kMax, kMax3, true)

constexpr Entry kEntries[] = {
    EACH(kAdd, AddH),
    EACH(kSub, SubH),
    EACH(kMul, MulF16),
    H3(0),
    H3(kFtz),
    H3(kSat),
    H3((kFtz | kSat)),
    H3(kRelu),
    H3((kFtz | kRelu)),
    B2(kAdd, AddH),
    B2(kSub, SubH),
    B2(kMul, MulBf16),
    B3(0),
    B3(kRelu),
    ONE1(kNeg, NegH, F16, 0),
    ONE1(kNeg, NegH, F16, kFtz),
    ONE1(kNeg, NegH, BF16, 0),
    ONE1(kAbs, AbsH, F16, 0),
    ONE1(kAbs, AbsH, F16, kFtz),
    ONE1(kAbs, AbsH, BF16, 0),
    EXTREME(F16, 0),
    EXTREME(F16, kFtz),
    EXTREME(F16, kNaN),
    EXTREME(F16, (kFtz | kNaN)),
    EXTREME(F16, kXorsign),
    EXTREME(F16, (kFtz | kXorsign)),
    EXTREME(F16, (kNaN | kXorsign)),
    EXTREME(F16, (kFtz | kNaN | kXorsign)),
    EXTREME(BF16, 0),
    EXTREME(BF16, kNaN),
    EXTREME(BF16, kXorsign),
    EXTREME(BF16, (kNaN | kXorsign)),
};

}  // namespace

Entries HalfEntries() { return MakeEntries(kEntries); }

}  // namespace allranks::node::alu::ALLRANKS_ISA
