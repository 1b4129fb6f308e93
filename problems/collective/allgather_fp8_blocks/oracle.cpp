// Every rank's outputs hold the bytes and scales of all shards. One result is right for each: the
// statement fixes every rounding.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {
// To nearest even, saturating. Below 2^-6 numbers are multiples of 2^-9; above, the upper four bits
// of f32's mantissa with its leading one stay, and a carry goes into the exponent.
std::uint8_t E4m3(float x) {
  const float magnitude = std::min(std::abs(x), 448.0f);
  std::uint32_t bits = std::bit_cast<std::uint32_t>(magnitude);
  bits = (bits + 0x7ffff + (bits >> 20 & 1)) >> 20;
  const auto small = static_cast<std::uint32_t>(std::nearbyintf(magnitude * 512));
  const std::uint32_t byte = magnitude < 0x1p-6f ? small : bits - (120u << 3);
  return static_cast<std::uint8_t>(byte | (std::signbit(x) ? 0x80 : 0));
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::size_t n = call.Param("n"), scales = (n + 127) / 128;
  std::vector<std::uint8_t> values(n);
  std::vector<float> scale(scales);
  for (int source = 0; source < call.world(); ++source) {
    const auto in = call.In<BF16>(source, "in");
    for (std::size_t b = 0; b < scales; ++b) {
      float x[128], a = 0;
      const std::size_t count = std::min<std::size_t>(128, n - 128 * b);
      for (std::size_t j = 0; j < count; ++j) {
        x[j] = std::bit_cast<float>(std::uint32_t{in[128 * b + j].bits} << 16);
        a = std::max(a, std::abs(x[j]));
      }
      const float inverse = a == 0 ? 0 : 448.0f / a;
      for (std::size_t j = 0; j < count; ++j) values[128 * b + j] = E4m3(x[j] * inverse);
      scale[b] = a / 448.0f;
    }
    for (int rank = 0; rank < call.world(); ++rank) {
      check.ExactAt<std::uint8_t>(rank, "values", source * n, values);
      check.ExactAt<float>(rank, "scales", source * scales, scale);
    }
  }
}
