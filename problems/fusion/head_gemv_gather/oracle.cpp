// Each rank's columns are a product of its own; all ranks have all of them.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t rows = call.Param("rows"), vocab = call.Param("vocab");
  const std::int64_t depth = call.Param("depth"), width = call.world() * vocab;
  std::vector<float> logits(rows * width);  // sums are far below 2^24, so exact in any order
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::vector<double> hidden = call.InAsDouble(rank, "hidden");
    const std::vector<double> weight = call.InAsDouble(rank, "weight");
    const std::vector<std::int32_t> a(hidden.begin(), hidden.end());
    const std::vector<std::int32_t> b(weight.begin(), weight.end());
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t v = 0; v < vocab; ++v) {
        std::int32_t sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) sum += a[i * depth + k] * b[v * depth + k];
        logits[i * width + rank * vocab + v] = static_cast<float>(sum);
      }
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) check.Exact(rank, "logits", logits);
}
