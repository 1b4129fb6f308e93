// All similarities, the best k of them in the order of (similarity, lower id).
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t per = call.Param("per"), rows = call.Param("rows"), k = call.Param("k");
  const std::int64_t width = 16 * call.Param("quads"), all = call.world() * rows;
  const std::int64_t kept = std::min(k, all);
  std::vector<std::pair<std::int32_t, std::int32_t>> best(all);  // minus similarity, id
  std::vector<std::int32_t> score(kept), index(kept);
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto queries = call.In<std::int8_t>(rank, "queries");
    for (std::int64_t p = 0; p < per; ++p) {
      const std::int8_t* q = &queries[(rank * per + p) * width];
      for (std::int64_t id = 0; id < all; ++id) {
        const std::int8_t* x =
            &call.In<std::int8_t>(static_cast<int>(id / rows), "database")[id % rows * width];
        std::int32_t sum = 0;
        for (std::int64_t j = 0; j < width; ++j) sum += q[j] * x[j];
        best[id] = {-sum, static_cast<std::int32_t>(id)};
      }
      std::partial_sort(best.begin(), best.begin() + kept, best.end());
      for (std::int64_t t = 0; t < kept; ++t) score[t] = -best[t].first, index[t] = best[t].second;
      check.ExactAt<std::int32_t>(rank, "score", p * k, score);
      check.ExactAt<std::int32_t>(rank, "index", p * k, index);
      check.Untouched(rank, "score", p * k + kept, (p + 1) * k);
      check.Untouched(rank, "index", p * k + kept, (p + 1) * k);
    }
  }
}
