// With a common scale that is a power of two, sums of e4m3 numbers are exact in fp32: multiples of
// 2^-9 of at most 8 * 448. So one result is right.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {
// The nearest e4m3 number of a magnitude of at most 448, ties to even: adding and subtracting a
// power of two rounds to a multiple of its last place.
float RoundE4m3(float x) {
  const float magnitude = std::abs(x);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(std::max(magnitude, 0x1p-6f));
  const auto power = std::bit_cast<float>((bits & 0x7f800000u) + (20u << 23));
  return std::copysign((magnitude + power) - power, x);
}
float Value(BF16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::size_t m = call.Param("m");
  float a = 0;
  for (int r = 0; r < call.world(); ++r) {
    for (const BF16 x : call.In<BF16>(r, "in")) a = std::max(a, std::abs(Value(x)));
  }
  int exponent = 0;
  std::frexp(a, &exponent);  // a = 0.5..1 * 2^exponent
  float scale = a == 0 ? 1 : std::ldexp(1.0f, exponent - 9);
  if (a > 448 * scale) scale *= 2;
  const float inverse = 1 / scale;
  for (int rank = 0; rank < call.world(); ++rank) {
    std::vector<float> sum(m);
    for (int r = 0; r < call.world(); ++r) {
      const auto in = call.In<BF16>(r, "in").subspan(rank * m, m);
      for (std::size_t i = 0; i < m; ++i) sum[i] += RoundE4m3(Value(in[i]) * inverse);
    }
    for (float& x : sum) x *= scale;
    check.Exact(rank, "out", sum);
  }
}
