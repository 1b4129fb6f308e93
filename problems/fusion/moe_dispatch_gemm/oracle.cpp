// Rows of every expert in the order of sources and tokens, times its weights; integers, so exact.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t world = call.world(), per = call.Param("per"), topk = call.Param("topk");
  const std::int64_t tokens = call.Param("tokens");
  const std::int64_t depth = 64 * call.Param("depth"), cols = 32 * call.Param("cols");
  std::vector<std::vector<std::int64_t>> rows(world * per);  // by expert: source and token
  std::vector<std::vector<std::int32_t>> counts(world, std::vector<std::int32_t>(per * world));
  std::vector<std::vector<double>> x;
  for (int source = 0; source < world; ++source) {
    const auto ids = call.In<std::int32_t>(source, "ids");
    x.push_back(call.InAsDouble(source, "x"));
    for (std::int64_t i = 0; i < tokens * topk; ++i) {
      rows[ids[i]].push_back(source * tokens + i / topk);
      ++counts[ids[i] / per][ids[i] % per * world + source];
    }
  }
  std::vector<float> b(depth * cols), y(cols);
  for (int rank = 0; rank < world; ++rank) {
    check.Exact(rank, "count", counts[rank]);
    const std::vector<double> w = call.InAsDouble(rank, "w");
    for (std::int64_t e = 0; e < per; ++e) {
      for (std::int64_t i = 0; i < depth * cols; ++i) {
        b[i % depth * cols + i / depth] = static_cast<float>(w[e * cols * depth + i]);
      }
      std::int64_t at = e * world * tokens * cols;
      for (const std::int64_t row : rows[rank * per + e]) {
        const double* a = x[row / tokens].data() + row % tokens * depth;
        std::fill(y.begin(), y.end(), 0.0F);
        for (std::int64_t k = 0; k < depth; ++k) {
          const auto factor = static_cast<float>(a[k]);
          for (std::int64_t j = 0; j < cols; ++j) y[j] += factor * b[k * cols + j];
        }
        check.ExactAt<float>(rank, "y", at, y);
        at += cols;
      }
      check.Untouched(rank, "y", at, (e + 1) * world * tokens * cols);
    }
  }
}

// A row comes once to each rank that has experts of it, and leaves once if one of them is another.
// One byte per element is a safe bound for small integers.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t per = call.Param("per"), topk = call.Param("topk");
  const std::int64_t tokens = call.Param("tokens");
  std::int64_t came = 0, left = 0, made = 0, crossed = 0;
  for (int source = 0; source < call.world(); ++source) {
    const auto ids = call.In<std::int32_t>(source, "ids");
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<char> to(call.world());
      for (std::int64_t k = 0; k < topk; ++k) {
        const std::int64_t holder = ids[t * topk + k] / per;
        made += holder == rank;
        to[holder] = 1;
      }
      to[source] = 0;
      const std::int64_t ranks = std::count(to.begin(), to.end(), 1);
      crossed += ranks;
      came += to[rank];
      left += source == rank && ranks > 0;
    }
  }
  const double depth = 64.0 * static_cast<double>(call.Param("depth"));
  const double cols = 32.0 * static_cast<double>(call.Param("cols"));
  floor.ingress = static_cast<double>(came) * depth;
  floor.egress = static_cast<double>(left) * depth;
  floor.busiest = static_cast<double>(crossed) / call.world() * depth;
  floor.hbm = static_cast<double>(made) * cols * 4;
  floor.flops = 2 * static_cast<double>(made) * cols * depth;
}
