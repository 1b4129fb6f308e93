// Softmax over the positions of all ranks in double. The bound, with u = 2^-24, n positions and
// |v| <= 1: sums of weights and of weighted values pass at most n additions each and a product,
// together 2 (n + 2) u of the weights' sum. A weight exp(x), x <= 0 from the maximum, has a
// relative error of (|x| + 4) 2 u by __expf; |x| exp(x) < 1/2, so all weights together add at most
// n u to the sum, twice, and 16 u of it. A merge has the same error again. All this is below (4 n +
// 256) u = (n + 64) 2^-22.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr std::int64_t kDim = 64;
  const std::int64_t per = call.Param("per");
  std::vector<std::vector<double>> k, v;
  double positions = 0;
  for (int s = 0; s < call.world(); ++s) {
    k.push_back(call.InAsDouble(s, "k"));
    v.push_back(call.InAsDouble(s, "v"));
    positions += call.In<std::int32_t>(s, "used")[0];
  }
  std::vector<double> out(call.world() * per * kDim), sums(call.world() * per);
  for (int s = 0; s < call.world(); ++s) {
    const std::vector<double> q = call.InAsDouble(s, "q");
    for (std::size_t h = 0; h < sums.size(); ++h) {
      for (std::int64_t i = 0; i < call.In<std::int32_t>(s, "used")[0]; ++i) {
        double dot = 0;
        for (std::int64_t d = 0; d < kDim; ++d) dot += q[h * kDim + d] * k[s][i * kDim + d];
        const double weight = std::exp(dot / 8);
        sums[h] += weight;
        for (std::int64_t d = 0; d < kDim; ++d) out[h * kDim + d] += weight * v[s][i * kDim + d];
      }
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] /= std::max(sums[i / kDim], 1e-300);
  const std::vector<double> bound(per * kDim, (positions + 64) * 0x1p-22);
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Near(rank, "out", std::span(out).subspan(rank * per * kDim, per * kDim), bound);
  }
}

// Keys and values that count are read once. Where another rank has positions, something must come
// for each output; a rank with positions has something for each output of all others. 16 bits of
// each are a safe bound of the precision that is asked for.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const double outputs = 64.0 * static_cast<double>(call.Param("per"));
  const double used = call.In<std::int32_t>(rank, "used")[0];
  bool others = false;
  for (int s = 0; s < call.world(); ++s) {
    others |= s != rank && call.In<std::int32_t>(s, "used")[0] > 0;
  }
  floor.ingress = others ? 2 * outputs : 0;
  floor.egress = used > 0 ? 2 * outputs * (call.world() - 1) : 0;
  floor.hbm = 256 * used + 2 * outputs * call.world() + 4 * outputs;
}
