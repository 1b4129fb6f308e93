// All terms are positive, so relative errors carry over: a sum of n terms, each off by t u with
// u = 2^-24, is off by (t + n) u. An exponential of 8 s, |8 s| <= 8, is within 24 u: expf has
// 2 ulp, __expf 2 + 1.173 * 8 ulp, exp2f of a rounded product 2 ulp and 16 u, an ulp being up to
// 2 u. With products and a reciprocal a step adds below 32 u to its n; in logarithms, of at most 32
// in magnitude, a few roundings of 32 u and exponentials of (4 + 2.4 * 32) u, below 256 u. The
// last u has the errors of five steps, the last v those of six, q both and one exponential more:
// at most 6 samples + 5 protos + 12 * 256, which is below 6 (samples of all + protos + 512).
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::size_t samples = call.Param("samples"), protos = call.Param("protos");
  const std::size_t all = call.world() * samples;
  const double relative = 6 * static_cast<double>(all + protos + 512) * 0x1p-24;
  std::vector<double> e, u(protos), v(all, 1.0), q(samples * protos), bound(samples * protos);
  for (int rank = 0; rank < call.world(); ++rank) {
    for (float s : call.In<float>(rank, "scores")) e.push_back(std::exp(8.0 * s));
  }
  for (int round = 0; round < 3; ++round) {
    std::fill(u.begin(), u.end(), 0.0);
    for (std::size_t i = 0; i < all; ++i) {
      for (std::size_t j = 0; j < protos; ++j) u[j] += e[i * protos + j] * v[i];
    }
    for (double& x : u) x = 1 / x;
    for (std::size_t i = 0; i < all; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < protos; ++j) sum += e[i * protos + j] * u[j];
      v[i] = 1 / sum;
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    for (std::size_t i = 0; i < q.size(); ++i) {
      const std::size_t sample = rank * samples + i / protos;
      q[i] = e[sample * protos + i % protos] * u[i % protos] * v[sample];
      bound[i] = q[i] * relative;
    }
    check.Near(rank, "q", q, bound);
  }
}
