// The statement fixes every rounding, so one result is right for each element.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {
// The nearest e4m3 number, ties to even, saturating: adding and subtracting a power of two rounds
// to a multiple of its last place.
float RoundE4m3(float x) {
  const float magnitude = std::min(std::abs(x), 448.0f);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(std::max(magnitude, 0x1p-6f));
  const auto power = std::bit_cast<float>((bits & 0x7f800000u) + (20u << 23));
  return std::copysign((magnitude + power) - power, x);
}

// To nearest even; finite.
BF16 RoundBf16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::size_t n = call.Param("n");
  std::vector<BF16> row(n);
  std::vector<float> amax(call.world());
  for (int source = 0; source < call.world(); ++source) {
    float history = 0;
    for (const float h : call.In<float>(source, "history")) {
      history = std::max(history, std::abs(h));
    }
    if (history == 0) history = 448;
    const float inverse = 448.0f / history, scale = history / 448.0f;
    const auto in = call.In<float>(source, "in");
    for (std::size_t i = 0; i < n; ++i) row[i] = RoundBf16(RoundE4m3(in[i] * inverse) * scale);
    for (const float x : in) amax[source] = std::max(amax[source], std::abs(x));
    for (int rank = 0; rank < call.world(); ++rank) {
      check.ExactAt<BF16>(rank, "out", source * n, row);
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) check.Exact(rank, "amax", amax);
}
