// Sums of small integers: exact in any order, so one result is right for each element.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const int world = call.world(), cols = static_cast<int>(call.Param("cols"));
  const std::size_t n = call.Param("n");
  const auto grid = call.In<std::int32_t>(0, "grid");
  const int rows = (world - 1) / cols + 1;
  std::vector<std::vector<float>> sums(rows, std::vector<float>(n));
  for (int p = 0; p < world; ++p) {
    const auto in = call.In<float>(grid[p], "in");
    std::vector<float>& sum = sums[p / cols];
    for (std::size_t i = 0; i < n; ++i) sum[i] += in[i];
  }
  for (int column = 0; column < std::min(cols, world); ++column) {
    std::vector<float> out(n);
    for (int p = column; p < world; p += cols) {
      const auto tokens = static_cast<float>(call.In<std::uint32_t>(grid[p], "tokens")[0]);
      for (std::size_t i = 0; i < n; ++i) out[i] += tokens * sums[p / cols][i];
    }
    for (int p = column; p < world; p += cols) {
      check.Exact(grid[p], "row_sum", sums[p / cols]);
      check.Exact(grid[p], "out", out);
    }
  }
}
