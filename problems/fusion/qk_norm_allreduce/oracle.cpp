// Squares of small integers add up exactly in any order. In units u = 2^-24 what is left before the
// rounding to bf16 are: division and addition of eps, 2 u (half of it after the root); rsqrtf, of
// 2 ulp: 4 u, or an approximate root and quotient: 2 u + 4 u; two products: 2 u. Together below
// 10 u. The rounding adds half a unit in the last place of a value that is off by so much.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr double kEpsilon = 1e-5, kFloat = 10 * 0x1p-24, kOut = UnitOf(Type::kBf16);
  const std::size_t rows = call.Param("rows"), q_dim = call.Param("q_dim");
  const std::size_t k_dim = call.Param("k_dim"), columns = q_dim + 2 * k_dim;
  std::vector<std::vector<double>> qkv;
  for (int rank = 0; rank < call.world(); ++rank) qkv.push_back(call.InAsDouble(rank, "qkv"));

  // Columns [first, first + dim) of all ranks.
  const auto verify = [&](const char* out, const char* weights, std::size_t first,
                          std::size_t dim) {
    std::vector<double> factor(rows), norm(rows * dim), bound(rows * dim);
    for (std::size_t row = 0; row < rows; ++row) {
      double squares = 0;
      for (const std::vector<double>& x : qkv) {
        for (std::size_t j = 0; j < dim; ++j) {
          squares += x[row * columns + first + j] * x[row * columns + first + j];
        }
      }
      factor[row] = 1 / std::sqrt(squares / static_cast<double>(call.world() * dim) + kEpsilon);
    }
    for (int rank = 0; rank < call.world(); ++rank) {
      const std::vector<double> weight = call.InAsDouble(rank, weights);
      for (std::size_t i = 0; i < rows * dim; ++i) {
        const std::size_t row = i / dim, j = i % dim;
        norm[i] = weight[j] * qkv[rank][row * columns + first + j] * factor[row];
        bound[i] = std::abs(norm[i]) * (kFloat + kOut * (1 + kFloat));
      }
      check.Near(rank, out, norm, bound);
    }
  };
  verify("q", "q_weight", 0, q_dim);
  verify("k", "k_weight", q_dim, k_dim);
}
