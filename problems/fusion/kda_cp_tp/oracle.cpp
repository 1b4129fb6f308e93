// The recurrence as it is written down, token by token down each column, modulo 2^32, and the sums
// over rows.
#include <allranks/oracle.h>

#include <algorithm>
#include <vector>

using namespace allranks::oracle;
using Word = std::uint32_t;

constexpr int kDim = 32;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t heads = call.Param("heads"), tokens = call.Param("tokens");
  const int world = call.world(), tp = static_cast<int>(call.Param("tp"));
  std::vector<std::vector<Word>> states(tp, std::vector<Word>(heads * kDim * kDim));
  std::vector<Word> out(tokens * kDim);
  for (int first = 0; first < world; first += tp) {
    const int end = std::min(first + tp, world);
    std::fill(out.begin(), out.end(), 0);
    for (int rank = first; rank < end; ++rank) {
      const auto q = call.In<Word>(rank, "q"), k = call.In<Word>(rank, "k");
      const auto v = call.In<Word>(rank, "v"), decay = call.In<Word>(rank, "decay");
      const auto beta = call.In<Word>(rank, "beta"), w = call.In<Word>(rank, "w");
      std::vector<Word>& state = states[rank - first];
      for (std::int64_t n = 0; n < heads * tokens; ++n) {
        const Word *key = &k[n * kDim], *query = &q[n * kDim], *d = &decay[n * kDim];
        for (int i = 0; i < kDim; ++i) {
          Word* row = &state[(n / tokens * kDim + i) * kDim];
          Word read = 0, result = 0;
          for (int j = 0; j < kDim; ++j) {
            row[j] *= 2 * d[j] + 1;
            read += row[j] * key[j];
          }
          const Word change = beta[n] * (v[n * kDim + i] - read);
          for (int j = 0; j < kDim; ++j) {
            row[j] += change * key[j];
            result += row[j] * query[j];
          }
          const Word* weights = &w[(n / tokens * kDim + i) * kDim];
          for (int c = 0; c < kDim; ++c) out[n % tokens * kDim + c] += result * weights[c];
        }
      }
      check.Exact(rank, "state", state);
    }
    for (int rank = first; rank < end; ++rank) check.Exact(rank, "out", out);
  }
}

// The first row needs no state, the last one passes none on; a rank alone in its row adds nothing.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const int tp = static_cast<int>(call.Param("tp")), first = rank / tp * tp;
  const auto tokens = static_cast<double>(call.Param("tokens"));
  const double sums = std::min(first + tp, call.world()) - first > 1 ? 128 * tokens : 0;
  const double state = 4.0 * call.Param("heads") * std::min(1024.0, 64 * tokens);
  floor.ingress = sums + (first > 0 ? state : 0);
  floor.egress = sums + (rank + tp < call.world() ? state : 0);
  floor.hops = floor.ingress > 0 ? 1 : 0;
}
