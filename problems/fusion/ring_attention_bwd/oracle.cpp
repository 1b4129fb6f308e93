// Gradients in double from exact scores. The bound, with u = 2^-24 and n = world * rows: a weight's
// exponent x is at most 33, so subtracting and __expf have a relative error of (3 |x| + 8) u <
// 2^-17; a slope has two roundings more. Two bf16 numbers hold a number to 2^-16. A sum has at most
// 2 n products, each with at most 2 u in any order (DotBudget); that of the bias passes n more. All
// this is below 2^-15 + 5 n u, and the statement allows 2^-14 + n 2^-20, of the terms' magnitude.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {

constexpr std::int64_t kDim = 64;

struct Rank {
  std::vector<float> q, k, v, dout;
  std::vector<double> lse, delta;
  std::vector<double> dq, dk, dv, dq_size, dk_size, dv_size;  // sizes: by head and row
};

float Dot(const float* a, const float* b) {  // exact: integers of at most 256
  float sums[16] = {};
  for (std::int64_t d = 0; d < kDim; ++d) sums[d % 16] += a[d] * b[d];
  for (int i = 1; i < 16; ++i) sums[0] += sums[i];
  return sums[0];
}

void Add(double* to, double factor, const float* row) {
  for (std::int64_t d = 0; d < kDim; ++d) to[d] += factor * row[d];
}

// One query and one key, by their first elements.
void Meet(Rank& a, std::int64_t query, Rank& b, std::int64_t key) {
  const std::int64_t i = query * kDim, j = key * kDim;
  const double weight = std::exp(Dot(&a.q[i], &b.k[j]) / 8.0 - a.lse[query]);
  const double inner = Dot(&a.dout[i], &b.v[j]), slope = weight * (inner - a.delta[query]);
  const double size = weight * (std::abs(inner) + std::abs(a.delta[query])) * 2 / 8;
  Add(&a.dq[i], slope / 8, &b.k[j]);
  Add(&b.dk[j], slope / 8, &a.q[i]);
  Add(&b.dv[j], weight, &a.dout[i]);
  a.dq_size[query] += size;
  b.dk_size[key] += size;
  b.dv_size[key] += 2 * weight;
}

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t heads = call.Param("heads"), rows = call.Param("rows");
  const std::int64_t ring = call.Param("ring"), world = call.world(), all = heads * rows;
  const double allowed = 0x1p-14 + static_cast<double>(world * rows) * 0x1p-20;
  std::vector<Rank> ranks(world);
  for (int r = 0; r < world; ++r) {
    const auto floats = [&](std::string_view tensor) {
      const std::vector<double> in = call.InAsDouble(r, tensor);
      return std::vector<float>(in.begin(), in.end());
    };
    const std::vector<double> none(all * kDim), no_size(all);
    ranks[r] = {floats("q"),
                floats("k"),
                floats("v"),
                floats("dout"),
                call.InAsDouble(r, "lse"),
                call.InAsDouble(r, "delta"),
                none,
                none,
                none,
                no_size,
                no_size,
                no_size};
  }
  std::vector<double> bias(heads * kDim), bias_bound(heads * kDim);
  for (int r = 0; r < world; ++r) {
    Rank& own = ranks[r];
    for (std::int64_t s = r / ring * ring; s < std::min(world, r / ring * ring + ring); ++s) {
      for (std::int64_t row = 0; row < all; ++row) {
        const std::int64_t end = row + (s <= r ? 1 : 0);
        for (std::int64_t key = row / rows * rows; key < end; ++key) Meet(own, row, ranks[s], key);
      }
    }
    for (std::int64_t i = 0; i < all * kDim; ++i) {
      bias[i / kDim / rows * kDim + i % kDim] += own.dq[i];
      bias_bound[i / kDim / rows * kDim + i % kDim] += own.dq_size[i / kDim] * allowed;
    }
  }
  for (int r = 0; r < world; ++r) {
    const auto compare = [&](std::string_view tensor, const std::vector<double>& expected,
                             const std::vector<double>& sizes) {
      std::vector<double> bound(expected.size());
      for (std::size_t i = 0; i < bound.size(); ++i) bound[i] = sizes[i / kDim] * allowed;
      check.Near(r, tensor, expected, bound);
    };
    compare("dq", ranks[r].dq, ranks[r].dq_size);
    compare("dk", ranks[r].dk, ranks[r].dk_size);
    compare("dv", ranks[r].dv, ranks[r].dv_size);
    check.Near(r, "dbias", bias, bias_bound);
  }
}

// A rank alone in its group needs no rows of others, only what they add to the bias.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t ring = call.Param("ring"), first = rank / ring * ring;
  if (std::min<std::int64_t>(ring, call.world() - first) > 1) return;
  floor.ingress = floor.egress = floor.busiest = 128.0 * static_cast<double>(call.Param("heads"));
}
