// Softmax over all keys up to the query's position in double. The bound, with u = 2^-24, n keys and
// |v| <= 1: sums of weights and of weighted values pass at most n additions each and a product,
// together 2 (n + 2) u of the weights' sum. A weight exp(x), x <= 0 from the maximum, has a
// relative error of (|x| + 4) 2 u by __expf; |x| exp(x) < 1/2, so all weights together add at most
// n u to the sum, twice, and 16 u of it. A merge has the same error again. All this is below (4 n +
// 256) u = (n + 64) 2^-22.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {

constexpr std::int64_t kDim = 64;

// A tensor of all ranks by head and position.
std::vector<double> InOrder(const Call& call, std::string_view tensor) {
  const std::int64_t chunk = call.Param("chunk"), heads = call.Param("heads");
  const std::int64_t world = call.world(), all = 2 * world * chunk;
  std::vector<double> ordered(heads * all * kDim);
  for (int rank = 0; rank < world; ++rank) {
    const std::vector<double> part = call.InAsDouble(rank, tensor);
    for (std::int64_t i = 0; i < heads * 2; ++i) {
      const std::int64_t at = i / 2 * all + (i % 2 == 0 ? rank : 2 * world - 1 - rank) * chunk;
      std::copy_n(part.begin() + i * chunk * kDim, chunk * kDim, ordered.begin() + at * kDim);
    }
  }
  return ordered;
}

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t chunk = call.Param("chunk"), heads = call.Param("heads");
  const std::int64_t world = call.world(), all = 2 * world * chunk;
  const std::vector<double> q = InOrder(call, "q"), k = InOrder(call, "k"), v = InOrder(call, "v");
  std::vector<double> out(q.size()), bound(q.size());
  for (std::int64_t row = 0; row < heads * all; ++row) {
    double sum = 0;
    double* to = out.data() + row * kDim;
    for (std::int64_t key = row / all * all; key <= row; ++key) {
      double dot = 0;
      for (std::int64_t d = 0; d < kDim; ++d) dot += q[row * kDim + d] * k[key * kDim + d];
      const double weight = std::exp(dot / 8);
      sum += weight;
      for (std::int64_t d = 0; d < kDim; ++d) to[d] += weight * v[key * kDim + d];
    }
    for (std::int64_t d = 0; d < kDim; ++d) {
      to[d] /= sum;
      bound[row * kDim + d] = static_cast<double>(row % all + 65) * 0x1p-22;
    }
  }
  for (int rank = 0; rank < world; ++rank) {
    for (std::int64_t i = 0; i < heads * 2; ++i) {
      const std::int64_t at = i / 2 * all + (i % 2 == 0 ? rank : 2 * world - 1 - rank) * chunk;
      check.NearAt(rank, "out", i * chunk * kDim, std::span(out).subspan(at * kDim, chunk * kDim),
                   std::span(bound).subspan(at * kDim, chunk * kDim));
    }
  }
}
