// Scores are exact; in units u = 2^-24, an exponential of at most 34 in magnitude is off by 2 ulp
// and 1.173 ulp per unit (__expf) or by 2 ulp and 2 u per unit (exp2f of a product), an ulp being
// up to 2 u: below 90 u. Sigmoids add four roundings, products and sums N + 2: below (N + 128) u. A
// logarithm of a rounded 1 + t is off by u, and __logf near 1 by 2^-21.4: below 16 u absolute.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr double kUnit = 0x1p-24;
  constexpr std::size_t kDim = 64;
  const std::size_t n = call.Param("n"), texts = call.world() * n;
  std::vector<float> text(texts * kDim), image(n * kDim);
  const auto read = [&](int rank, const char* tensor, float* to) {
    for (const std::int8_t x : call.In<std::int8_t>(rank, tensor)) *to++ = x;
  };
  for (int r = 0; r < call.world(); ++r) read(r, "text", &text[r * n * kDim]);
  for (int rank = 0; rank < call.world(); ++rank) {
    std::vector<double> loss(n), loss_bound(n), grad(n * kDim), grad_bound(n * kDim);
    read(rank, "image", image.data());
    for (std::size_t i = 0; i < n; ++i) {
      float sums[kDim] = {};  // magnitudes; a bound need not be exact
      for (std::size_t j = 0; j < texts; ++j) {
        const float* features = &text[j * kDim];
        float dot = 0;
        for (std::size_t d = 0; d < kDim; ++d) dot += image[i * kDim + d] * features[d];
        const double sign = j == rank * n + i ? 1 : -1, t = std::exp(-sign * (dot / 32768.0 - 2));
        const double coefficient = -sign * t / (1 + t) / 32768;
        loss[i] += std::log1p(t);
        for (std::size_t d = 0; d < kDim; ++d) {
          grad[i * kDim + d] += coefficient * features[d];
          sums[d] += static_cast<float>(std::abs(coefficient)) * std::abs(features[d]);
        }
      }
      const double terms = static_cast<double>(texts);
      loss_bound[i] = ((terms + 128) * loss[i] + 16 * terms) * kUnit;
      for (std::size_t d = 0; d < kDim; ++d) {
        grad_bound[i * kDim + d] = (terms + 128) * sums[d] * kUnit * 1.001;
      }
    }
    check.Near(rank, "loss", loss, loss_bound);
    check.Near(rank, "grad", grad, grad_bound);
  }
}
