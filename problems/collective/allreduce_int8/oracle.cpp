// The statement fixes every rounding, so one result is right. Scales are powers of two: products
// and quotients are exact.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {
// Replaces a block's numbers by their integers times the scale.
void Quantise(float* x, std::size_t count) {
  float a = 0;
  for (std::size_t j = 0; j < count; ++j) a = std::max(a, std::abs(x[j]));
  if (a == 0) return;
  int exponent = 0;
  std::frexp(a, &exponent);  // a = 0.5..1 * 2^exponent
  float scale = std::ldexp(1.0f, exponent - 7);
  if (a > 127 * scale) scale *= 2;
  const float inverse = 1 / scale;
  for (std::size_t j = 0; j < count; ++j) x[j] = std::nearbyintf(x[j] * inverse) * scale;
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::size_t n = call.Param("n");
  std::vector<BF16> out(n);
  for (std::size_t begin = 0; begin < n; begin += 128) {
    const std::size_t count = std::min<std::size_t>(128, n - begin);
    float sum[128] = {}, x[128];
    for (int r = 0; r < call.world(); ++r) {
      const auto in = call.In<BF16>(r, "in").subspan(begin, count);
      for (std::size_t j = 0; j < count; ++j) {
        x[j] = std::bit_cast<float>(std::uint32_t{in[j].bits} << 16);
      }
      Quantise(x, count);
      for (std::size_t j = 0; j < count; ++j) sum[j] += x[j];
    }
    Quantise(sum, count);
    for (std::size_t j = 0; j < count; ++j) {
      out[begin + j].bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(sum[j]) >> 16);
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) check.Exact(rank, "out", out);
}
