// Gradients and first moments are exact. A second moment has two roundings, q at most 11 units
// (1 of v', 4 of the root, 1 of the sum, 4 of the division, 1 to spare), which count an eighth;
// sums and products round |param| at most three times and |q| / 8 at most twice.
#include <allranks/oracle.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace allranks::oracle;

namespace {

constexpr std::size_t kSide = 64, kMatrix = kSide * kSide;

// The batch of a tensor, by samples: [64 samples][64], so that sums run along the vectors.
std::vector<float> Samples(std::span<const F16> from) {
  std::vector<float> to(kMatrix);
  for (std::size_t i = 0; i < kMatrix; ++i) {
    to[i % kSide * kSide + i / kSide] = static_cast<float>(ToDouble(from[i]));
  }
  return to;
}

void AddTimes(float* to, float factor, const float* row) {
  if (factor == 0) return;
  for (std::size_t i = 0; i < kSide; ++i) to[i] += factor * row[i];
}

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::size_t shard = call.Count("param");
  std::vector<float> w(2 * kMatrix), flipped(2 * kMatrix), grad(2 * kMatrix);
  for (std::size_t i = 0; i < w.size(); ++i) {
    w[i] = call.In<float>(static_cast<int>(i / shard), "param")[i % shard];
    flipped[i / kMatrix * kMatrix + i % kSide * kSide + i % kMatrix / kSide] = w[i];
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    for (std::int64_t b = 0; b < call.Param("batches"); ++b) {
      const auto x = Samples(call.In<F16>(rank, "x").subspan(b * kMatrix, kMatrix));
      const auto target = Samples(call.In<F16>(rank, "target").subspan(b * kMatrix, kMatrix));
      for (std::size_t s = 0; s < kSide; ++s) {
        float z[kSide] = {}, y[kSide] = {}, d[kSide] = {};
        for (std::size_t k = 0; k < kSide; ++k) AddTimes(z, x[s * kSide + k], &flipped[k * kSide]);
        for (std::size_t f = 0; f < kSide; ++f) {
          if (z[f] > 0) AddTimes(y, z[f], &flipped[kMatrix + f * kSide]);
        }
        for (std::size_t o = 0; o < kSide; ++o) {
          const float t = target[s * kSide + o], e = static_cast<float>((y[o] > t) - (y[o] < t));
          AddTimes(d, e, &w[kMatrix + o * kSide]);
          float h[kSide];
          for (std::size_t f = 0; f < kSide; ++f) h[f] = std::max(z[f], 0.0f);
          AddTimes(&grad[kMatrix + o * kSide], e, h);
        }
        for (std::size_t f = 0; f < kSide; ++f) {
          if (z[f] > 0) AddTimes(&grad[f * kSide], d[f], &x[s * kSide]);
        }
      }
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::size_t count = std::min(shard, w.size() - rank * shard);
    std::vector<float> new_m(count);
    std::vector<double> next(count), new_v(count), bound(count), of_v(count);
    const auto m = call.In<float>(rank, "m"), v = call.In<float>(rank, "v");
    for (std::size_t i = 0; i < count; ++i) {
      const float g = grad[rank * shard + i], p = w[rank * shard + i];
      new_m[i] = 0.875f * m[i] + 0.125f * g;
      new_v[i] = 0.984375 * std::abs(v[i]) + 0.015625 * g * g;
      of_v[i] = 0x1p-22 * new_v[i];
      const double q = new_m[i] / (std::sqrt(new_v[i]) + 0x1p-10);
      next[i] = p - 0.125 * (q + 0.03125 * p);
      bound[i] = 0x1p-24 * (4 * std::abs(p) + 3 * std::abs(q));
    }
    check.Exact(rank, "new_m", new_m);
    check.Near(rank, "new_v", new_v, of_v);
    check.Near(rank, "new_param", next, bound);
  }
}
