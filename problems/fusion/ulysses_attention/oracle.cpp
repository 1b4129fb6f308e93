// Softmax over all positions in double. The bound, with u = 2^-24, n positions and |v| <= 1: sums
// of weights and of weighted values pass at most n additions each and a product, together
// 2 (n + 2) u of the weights' sum. A weight exp(x), x <= 0 from the maximum, has a relative error
// of (|x| + 4) 2 u by __expf; |x| exp(x) < 1/2, so all weights together add at most n u to the sum,
// twice, and 16 u of it. A merge has the same error again. All this is below (4 n + 256) u =
// (n + 64) 2^-22.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {

constexpr std::size_t kDim = 64;

// A tensor of all ranks by head and position.
std::vector<float> ByHead(const Call& call, std::string_view tensor) {
  const std::size_t tokens = call.Param("tokens"), world = call.world(), all = world * tokens;
  const std::size_t heads = world * call.Param("heads");
  std::vector<float> ordered(heads * all * kDim);
  for (std::size_t rank = 0; rank < world; ++rank) {
    const std::span<const BF16> part = call.In<BF16>(static_cast<int>(rank), tensor);
    for (std::size_t i = 0; i < part.size(); ++i) {
      const std::size_t row = i / kDim, position = rank * tokens + row / heads;
      ordered[(row % heads * all + position) * kDim + i % kDim] =
          static_cast<float>(ToDouble(part[i]));
    }
  }
  return ordered;
}

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::size_t tokens = call.Param("tokens"), world = call.world(), all = world * tokens;
  const std::size_t heads = world * call.Param("heads");
  const std::vector<float> q = ByHead(call, "q"), k = ByHead(call, "k"), v = ByHead(call, "v");
  const std::vector<double> bound(tokens * heads * kDim, static_cast<double>(all + 64) * 0x1p-22);
  std::vector<double> out(bound.size());
  for (std::size_t rank = 0; rank < world; ++rank) {
    std::fill(out.begin(), out.end(), 0.0);
    for (std::size_t row = 0; row < tokens * heads; ++row) {
      const std::size_t first = row % heads * all;  // position 0 of the head
      const float* query = &q[(first + rank * tokens + row / heads) * kDim];
      double sum = 0;
      double* to = &out[row * kDim];
      for (std::size_t key = first; key < first + all; ++key) {
        float dot = 0;  // of small integers, exact
        for (std::size_t d = 0; d < kDim; ++d) dot += query[d] * k[key * kDim + d];
        const double weight = std::exp(dot / 8.0);
        sum += weight;
        for (std::size_t d = 0; d < kDim; ++d) to[d] += weight * v[key * kDim + d];
      }
      for (std::size_t d = 0; d < kDim; ++d) to[d] /= sum;
    }
    check.Near(static_cast<int>(rank), "out", out, bound);
  }
}
