// Integers so small that logits are exact in any order; both outputs must be equal.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::size_t rows = call.Param("rows"), vocab = call.Param("vocab");
  const std::size_t depth = call.Param("depth");
  std::vector<std::int32_t> word(rows);
  std::vector<float> value(rows, -INFINITY);
  const auto floats = [&](int rank, const char* tensor) {
    const std::span<const F16> from = call.In<F16>(rank, tensor);
    std::vector<float> to(from.size());
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(ToDouble(from[i]));
    return to;
  };
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::vector<float> hidden = floats(rank, "hidden"), weight = floats(rank, "weight");
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t v = 0; v < vocab; ++v) {
        float logit = 0;
        for (std::size_t k = 0; k < depth; ++k) {
          logit += hidden[row * depth + k] * weight[v * depth + k];
        }
        if (logit <= value[row]) continue;  // words come in ascending order: the first one stays
        value[row] = logit;
        word[row] = static_cast<std::int32_t>(rank * vocab + v);
      }
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Exact(rank, "word", word);
    check.Exact(rank, "value", value);
  }
}
