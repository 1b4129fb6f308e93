// Attention and product in double. The bound, with u = 2^-24, relative to the output with absolute
// values of v and w: a weight exp(x), |x| <= 32, has an error of (|x| + 4) 2 u by __expf, and its
// two bf16 numbers of 2^-16; sums over c keys have at most 2 c products, each with at most 2 u in
// any order (DotBudget), and the denominator the weight's error and c u. Two bf16 numbers of O add
// 2^-16, and 2 p products over p = 64 heads tp another 4 p u. All this is below 2^-15 + 160 u +
// 5 (c + p) u, and the statement allows 2^-14 + (c + p) 2^-21 = 2^-14 + 8 (c + p) u.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {

constexpr std::int64_t kDim = 64;

struct Rank {
  std::vector<float> q, k, v, w;
};

float Dot(const float* a, const float* b) {  // exact: integers of at most 256
  float sums[16] = {};
  for (std::int64_t d = 0; d < kDim; ++d) sums[d % 16] += a[d] * b[d];
  for (int i = 1; i < 16; ++i) sums[0] += sums[i];
  return sums[0];
}

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t heads = call.Param("heads"), rows = call.Param("rows");
  const std::int64_t cols = call.Param("cols"), tp = call.Param("tp"), world = call.world();
  std::vector<Rank> ranks(world);
  for (int r = 0; r < world; ++r) {
    const auto floats = [&](std::string_view tensor) {
      const std::vector<double> in = call.InAsDouble(r, tensor);
      return std::vector<float>(in.begin(), in.end());
    };
    ranks[r] = {floats("q"), floats("k"), floats("v"), floats("w")};
  }
  const double n = static_cast<double>(world / tp * rows + kDim * heads * tp);
  for (std::int64_t first = 0; first < world; first += tp) {
    std::vector<double> out(rows * cols), bound(rows * cols);
    for (std::int64_t at = 0; at < tp * heads * rows; ++at) {
      const std::int64_t r = first + at / (heads * rows), head = at / rows % heads, i = at % rows;
      double sum = 0, output[kDim] = {}, size[kDim] = {};
      for (std::int64_t key = 0; key < world / tp * rows; ++key) {
        const Rank& from = ranks[key / rows * tp + r % tp];
        const std::int64_t j = (head * rows + key % rows) * kDim;
        const double weight = std::exp(Dot(&ranks[r].q[(head * rows + i) * kDim], &from.k[j]) / 8);
        sum += weight;
        for (std::int64_t d = 0; d < kDim; ++d) {
          output[d] += weight * from.v[j + d];
          size[d] += weight * std::abs(from.v[j + d]);
        }
      }
      for (std::int64_t m = 0; m < cols; ++m) {
        const float* w = &ranks[r].w[(m * heads + head) * kDim];
        double product = 0, product_size = 0;
        for (std::int64_t d = 0; d < kDim; ++d) {
          product += output[d] * w[d];
          product_size += size[d] * std::abs(w[d]);
        }
        out[i * cols + m] += product / sum;
        bound[i * cols + m] += product_size / sum * (0x1p-14 + n * 0x1p-21);
      }
    }
    for (std::int64_t r = first; r < first + tp; ++r) {
      check.Near(static_cast<int>(r), "out", out, bound);
    }
  }
}
