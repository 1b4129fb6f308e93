// Attention in double. The bound, with u = 2^-24 and n keys, relative to the output with absolute
// values of v: a weight exp(x), |x| <= 32, has an error of (|x| + 4) 2 u by __expf, and its two
// bf16 numbers of 2^-16; sums have at most 2 n products, each with at most 2 u in any order
// (DotBudget), and the denominator the weight's error and n u. All this is below 2^-16 + 150 u + 5
// n u, and the statement allows 2^-15 + n 2^-21 = 2^-15 + 8 n u.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {

constexpr std::int64_t kDim = 64, kRanges = 4;

float Dot(const float* a, const float* b) {  // exact: integers of at most 256
  float sums[16] = {};
  for (std::int64_t d = 0; d < kDim; ++d) sums[d % 16] += a[d] * b[d];
  for (int i = 1; i < 16; ++i) sums[0] += sums[i];
  return sums[0];
}

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t rows = call.Param("rows"), world = call.world();
  const std::int64_t heads = world * call.Param("heads"), length = world * rows;
  struct Rank {
    std::vector<float> q, k, v;
  };
  std::vector<Rank> ranks(world);
  for (int r = 0; r < world; ++r) {
    const auto floats = [&](std::string_view tensor) {
      const std::vector<double> in = call.InAsDouble(r, tensor);
      return std::vector<float>(in.begin(), in.end());
    };
    ranks[r] = {floats("q"), floats("k"), floats("v")};
  }
  for (int r = 0; r < world; ++r) {
    std::vector<double> out(kRanges * rows * heads * kDim), bound(out.size());
    for (std::int64_t row = 0; row < kRanges * rows * heads; ++row) {
      const std::int64_t head = row % heads, seen = (row / heads / rows + 1) * length;
      double sum = 0, *to = &out[row * kDim], *size = &bound[row * kDim];
      for (std::int64_t key = 0; key < seen; ++key) {
        const Rank& from = ranks[key / rows % world];
        const std::int64_t at = ((key / length * rows + key % rows) * heads + head) * kDim;
        const double weight = std::exp(Dot(&ranks[r].q[row * kDim], &from.k[at]) / 8);
        sum += weight;
        for (std::int64_t d = 0; d < kDim; ++d) {
          to[d] += weight * from.v[at + d];
          size[d] += weight * std::abs(from.v[at + d]);
        }
      }
      for (std::int64_t d = 0; d < kDim; ++d) {
        to[d] /= sum;
        size[d] *= (0x1p-15 + static_cast<double>(seen) * 0x1p-21) / sum;
      }
    }
    check.Near(r, "out", out, bound);
  }
}
