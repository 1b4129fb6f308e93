// Sums of rows, and totals of the clipped ones. Clipping moves no two numbers apart, so a sum's
// error bounds what it adds to the total's.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const int world = call.world(), cols = static_cast<int>(call.Param("cols"));
  const auto n = static_cast<std::size_t>(call.Param("n"));
  const auto limit = static_cast<double>(call.Param("limit"));
  const Type f32 = Type::kF32;
  const Budget in_row = SumBudget(f32, f32, f32, cols);
  const Budget in_column = SumBudget(f32, f32, f32, world / cols);
  std::vector<double> total(cols * n), magnitude(cols * n), error(cols * n);
  for (int first = 0; first < world; first += cols) {
    std::vector<double> sum(cols * n), of(cols * n), bound(cols * n);
    for (int rank = first; rank < first + cols; ++rank) {
      const auto in = call.In<float>(rank, "in");
      for (std::size_t i = 0; i < cols * n; ++i) {
        sum[i] += in[i];
        of[i] += std::abs(static_cast<double>(in[i]));
      }
    }
    for (std::size_t i = 0; i < cols * n; ++i) {
      bound[i] = in_row.Of(of[i], sum[i]);
      const double clipped = std::clamp(sum[i], -limit, limit);
      total[i] += clipped;
      magnitude[i] += std::abs(clipped) + bound[i];
      error[i] += bound[i];
    }
    for (int c = 0; c < cols; ++c) {
      const std::span<const double> sums(sum), bounds(bound);
      check.Near(first + c, "row_sum", sums.subspan(c * n, n), bounds.subspan(c * n, n));
    }
  }
  for (std::size_t i = 0; i < cols * n; ++i) error[i] += in_column.Of(magnitude[i], total[i]);
  for (int rank = 0; rank < world; ++rank) check.Near(rank, "out", total, error);
}
