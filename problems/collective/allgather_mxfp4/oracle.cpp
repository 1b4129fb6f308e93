// Every rank's output holds the numbers of all shards. All are exact in double and in bf16.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr double kMagnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const std::size_t n = call.Param("n");
  std::vector<BF16> expected(n);
  for (int source = 0; source < call.world(); ++source) {
    const auto codes = call.In<std::uint8_t>(source, "codes");
    const auto exponents = call.In<std::uint8_t>(source, "exponents");
    for (std::size_t i = 0; i < n; ++i) {
      const int code = codes[i / 2] >> 4 * (i % 2) & 15;
      const double value = std::ldexp(kMagnitude[code % 8], exponents[i / 32] - 127);
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      expected[i].bits = static_cast<std::uint16_t>(bits >> 16 | (code & 8) << 12);
    }
    for (int rank = 0; rank < call.world(); ++rank) {
      check.ExactAt<BF16>(rank, "out", source * n, expected);
    }
  }
}
