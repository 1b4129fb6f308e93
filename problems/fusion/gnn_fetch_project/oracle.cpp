// Rows of the lists times the weights; integers, so exact. Rows of `out` behind a list untouched.
#include <allranks/oracle.h>

#include <set>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t depth = 64 * call.Param("depth"), cols = 32 * call.Param("cols");
  std::vector<float> w(depth * cols), out(cols);
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto counts = call.In<std::int32_t>(rank, "counts");
    const auto ids = call.In<std::int32_t>(rank, "ids");
    const auto weights = call.In<F16>(rank, "w");
    for (std::int64_t i = 0; i < depth * cols; ++i) {
      w[i % depth * cols + i / depth] = static_cast<float>(ToDouble(weights[i]));
    }
    std::int64_t at = 0;
    for (int owner = 0; owner < call.world(); ++owner) {
      const auto features = call.In<F16>(owner, "features");
      for (std::int32_t i = 0; i < counts[owner]; ++i, ++at) {
        std::fill(out.begin(), out.end(), 0.0F);
        for (std::int64_t k = 0; k < depth; ++k) {
          const auto x = static_cast<float>(ToDouble(features[ids[at] * depth + k]));
          for (std::int64_t j = 0; j < cols; ++j) out[j] += x * w[k * cols + j];
        }
        check.ExactAt<float>(rank, "out", at * cols, out);
      }
    }
    check.Untouched(rank, "out", at * cols);
  }
}

// Every distinct row that a rank wants of another one comes once, with half a byte for each of its
// small integers; or its product comes, with a byte for each of its sums.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const auto counts = call.In<std::int32_t>(rank, "counts");
  const auto ids = call.In<std::int32_t>(rank, "ids");
  const std::int64_t depth = call.Param("depth"), cols = call.Param("cols");
  std::size_t at = 0, rows = 0;
  for (int owner = 0; owner < call.world(); at += counts[owner++]) {
    const auto list = ids.subspan(at, counts[owner]);
    if (owner != rank) rows += std::set<std::int32_t>(list.begin(), list.end()).size();
  }
  floor.ingress = 32.0 * static_cast<double>(rows) * static_cast<double>(std::min(depth, cols));
  floor.hbm = 128.0 * static_cast<double>(cols) * static_cast<double>(at + 32 * depth);
}
