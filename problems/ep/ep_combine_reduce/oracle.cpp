// Sums by ascending rank with fused multiply-adds, rounded once at the end: exact.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t world = call.world(), tokens = call.Param("tokens");
  const std::int64_t hidden = call.Param("hidden");
  std::vector<float> sums(world * tokens * hidden);
  for (int source = 0; source < world; ++source) {
    const BF16* row = call.In<BF16>(source, "y").data();
    for (const std::int32_t place : call.In<std::int32_t>(source, "to")) {
      const auto weights = call.In<float>(static_cast<int>(place / tokens), "weights");
      const float weight = weights[place % tokens * world + source];
      float* sum = sums.data() + place * hidden;
      for (std::int64_t j = 0; j < hidden; ++j) {
        sum[j] = std::fmaf(weight, static_cast<float>(ToDouble(row[j])), sum[j]);
      }
      row += hidden;
    }
  }
  std::vector<BF16> out(tokens * hidden);
  for (int rank = 0; rank < world; ++rank) {
    const float* sum = sums.data() + rank * tokens * hidden;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = FromDouble<BF16>(sum[i]);
    check.Exact(rank, "out", out);
  }
}

// Rows for others leave once; the sums of what others have made for a token come, at least as bf16.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t tokens = call.Param("tokens");
  std::vector<char> fed(tokens);
  std::int64_t leaving = 0, coming = 0;
  for (int source = 0; source < call.world(); ++source) {
    for (const std::int32_t place : call.In<std::int32_t>(source, "to")) {
      const auto owner = static_cast<int>(place / tokens);
      if (source == rank) leaving += owner != rank;
      if (source != rank && owner == rank) fed[place % tokens] = 1;
    }
  }
  for (const char one : fed) coming += one;
  const double row_bytes = 2.0 * static_cast<double>(call.Param("hidden"));
  floor.ingress = static_cast<double>(coming) * row_bytes;
  floor.egress = static_cast<double>(leaving) * row_bytes;
}
