// The product, row by row: sums of small integers, exact in any order.
#include <allranks/oracle.h>

#include <algorithm>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t rows = call.Param("rows"), per_row = call.Param("per_row");
  const std::int64_t entries = call.Param("entries");
  std::vector<float> y(rows), entry(call.Param("needed"));
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto columns = call.In<std::int32_t>(rank, "columns");
    const auto index = call.In<std::int32_t>(rank, "index");
    const auto value = call.In<float>(rank, "value");
    for (std::size_t i = 0; i < entry.size(); ++i) {
      const auto owner = static_cast<int>(columns[i] / entries);
      entry[i] = call.In<float>(owner, "x")[columns[i] % entries];
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      y[row] = 0;
      for (std::int64_t j = row * per_row; j < (row + 1) * per_row; ++j) {
        y[row] += value[j] * entry[index[j]];
      }
    }
    check.Exact(rank, "y", y);
  }
}

// Every distinct entry of another rank that a nonzero value uses comes over a link. It has eleven
// bits, but the sums of a row have less information than its entries if there are few rows: not
// more than a byte per row is counted.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const auto columns = call.In<std::int32_t>(rank, "columns");
  const auto index = call.In<std::int32_t>(rank, "index");
  const auto value = call.In<float>(rank, "value");
  std::vector<std::int32_t> used;
  for (std::size_t j = 0; j < index.size(); ++j) {
    const std::int32_t column = columns[index[j]];
    if (value[j] != 0 && column / call.Param("entries") != rank) used.push_back(column);
  }
  std::sort(used.begin(), used.end());
  const auto distinct = std::unique(used.begin(), used.end()) - used.begin();
  floor.ingress = static_cast<double>(std::min<std::int64_t>(distinct, call.Param("rows")));
}
