// Every token by itself: its experts by score, and their answers; integers, so exact.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {
// The experts of each token of a rank, `topk` of them one after the other.
std::vector<std::int64_t> Experts(const Call& call, int rank) {
  const std::int64_t experts = call.world() * call.Param("per"), topk = call.Param("topk");
  const auto scores = call.In<std::int32_t>(rank, "scores");
  std::vector<std::int64_t> chosen, order(experts);
  for (std::int64_t t = 0; t < call.Param("tokens"); ++t) {
    for (std::int64_t e = 0; e < experts; ++e) order[e] = e;
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return scores[t * experts + a] > scores[t * experts + b];
    });
    chosen.insert(chosen.end(), order.begin(), order.begin() + topk);
  }
  return chosen;
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t per = call.Param("per"), tokens = call.Param("tokens");
  const std::int64_t experts = call.world() * per, topk = call.Param("topk");
  const std::int64_t depth = 64 * call.Param("depth"), cols = 32 * call.Param("cols");
  std::vector<float> w(experts * depth * cols);  // by expert, k and j
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::vector<double> from = call.InAsDouble(rank, "w");
    for (std::int64_t i = 0; i < per * depth * cols; ++i) {
      const std::int64_t e = i / depth / cols, j = i / depth % cols, k = i % depth;
      w[((rank * per + e) * depth + k) * cols + j] = static_cast<float>(from[i]);
    }
  }
  std::vector<float> out(tokens * cols), y(cols);
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::vector<std::int64_t> chosen = Experts(call, rank);
    const std::vector<double> x = call.InAsDouble(rank, "x");
    const auto scores = call.In<std::int32_t>(rank, "scores");
    std::fill(out.begin(), out.end(), 0.0F);
    for (std::int64_t i = 0; i < tokens * topk; ++i) {
      const std::int64_t t = i / topk, e = chosen[i];
      std::fill(y.begin(), y.end(), 0.0F);
      for (std::int64_t k = 0; k < depth; ++k) {
        const auto factor = static_cast<float>(x[t * depth + k]);
        const float* row = w.data() + (e * depth + k) * cols;
        for (std::int64_t j = 0; j < cols; ++j) y[j] += factor * row[j];
      }
      const auto gate = static_cast<float>(1 + scores[t * experts + e]);
      for (std::int64_t j = 0; j < cols; ++j) out[t * cols + j] += gate * std::max(0.0F, y[j]);
    }
    check.Exact(rank, "out", out);
  }
}

// What a rank has made of a token comes home as one row of sums: half a byte per element at least.
// Weights could leave in place of answers, so an expert's rank need not send more than these.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t per = call.Param("per"), topk = call.Param("topk");
  std::int64_t came = 0, left = 0, crossed = 0;
  for (int home = 0; home < call.world(); ++home) {
    const std::vector<std::int64_t> chosen = Experts(call, home);
    for (std::size_t i = 0; i < chosen.size(); i += topk) {
      std::vector<char> at(call.world());
      for (std::int64_t k = 0; k < topk; ++k) at[chosen[i + k] / per] = 1;
      at[home] = 0;
      const std::int64_t ranks = std::count(at.begin(), at.end(), 1);
      crossed += ranks;
      if (home == rank) came += ranks;
      left += at[rank];
    }
  }
  const double row = 16.0 * static_cast<double>(call.Param("cols"));
  floor.ingress = static_cast<double>(came) * row;
  floor.egress = static_cast<double>(std::min(left, 64 * call.Param("depth"))) * row;
  floor.busiest = static_cast<double>(crossed) / call.world() * row;
}
