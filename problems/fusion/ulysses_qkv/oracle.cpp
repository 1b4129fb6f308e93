// Outputs of rank r: the heads of group r of all ranks' tokens, copied bit by bit.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t world = call.world(), tokens = call.Param("tokens"), dim = call.Param("dim");
  const std::int64_t q = call.Param("q_heads") * dim, kv = call.Param("kv_heads") * dim;
  const std::int64_t share = call.Param("share"), groups = (world + share - 1) / share;
  const std::int64_t all = world * q + 2 * groups * kv;
  for (int rank = 0; rank < world; ++rank) {
    const std::int64_t key = world * q + rank / share * kv;
    for (int source = 0; source < world; ++source) {
      const auto qkv = call.In<BF16>(source, "qkv");
      for (std::int64_t t = 0; t < tokens; ++t) {
        const std::int64_t to = source * tokens + t;
        check.ExactAt<BF16>(rank, "q", to * q, qkv.subspan(t * all + rank * q, q));
        check.ExactAt<BF16>(rank, "k", to * kv, qkv.subspan(t * all + key, kv));
        check.ExactAt<BF16>(rank, "v", to * kv, qkv.subspan(t * all + key + groups * kv, kv));
      }
    }
  }
}
