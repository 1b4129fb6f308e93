// Sums by ascending expert with fused multiply-adds: exact.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t tokens = call.Param("tokens"), hidden = call.Param("hidden");
  const std::int64_t most = call.Param("most");
  std::vector<float> sums(call.world() * tokens * hidden);
  for (int source = 0; source < call.world(); ++source) {
    const auto used = call.In<std::int32_t>(source, "used");
    const auto to = call.In<std::int32_t>(source, "to");
    const auto gates = call.In<float>(source, "gates");
    const auto y = call.In<BF16>(source, "y");
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (static_cast<std::int64_t>(i) % most >= used[i / most]) continue;
      float* sum = sums.data() + to[i] * hidden;
      for (std::int64_t j = 0; j < hidden; ++j) {
        sum[j] = std::fmaf(gates[i], static_cast<float>(ToDouble(y[i * hidden + j])), sum[j]);
      }
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Exact(rank, "out",
                std::span<const float>(sums).subspan(rank * tokens * hidden, tokens * hidden));
  }
}

// Answers for others leave once; something comes for each token that others have answers for: at
// least as many bytes as a row has.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t tokens = call.Param("tokens"), most = call.Param("most");
  std::vector<char> fed(tokens);
  std::int64_t leaving = 0, coming = 0;
  for (int source = 0; source < call.world(); ++source) {
    const auto to = call.In<std::int32_t>(source, "to");
    const auto used = call.In<std::int32_t>(source, "used");
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (static_cast<std::int64_t>(i) % most >= used[i / most]) continue;
      const auto owner = static_cast<int>(to[i] / tokens);
      if (source == rank) leaving += owner != rank;
      if (source != rank && owner == rank) fed[to[i] % tokens] = 1;
    }
  }
  for (const char one : fed) coming += one;
  const double row_bytes = 2.0 * static_cast<double>(call.Param("hidden"));
  floor.ingress = static_cast<double>(coming) * row_bytes;
  floor.egress = static_cast<double>(leaving) * row_bytes;
  floor.hbm = static_cast<double>(tokens) * 2 * row_bytes;
}
