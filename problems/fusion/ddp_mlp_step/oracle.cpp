// Gradients and first moments are exact. A second moment has two roundings, q at most 11 units
// (1 of v', 4 of the root, 1 of the sum, 4 of the division, 1 to spare), which count an eighth;
// sums and products round |param| at most three times and |q| / 8 at most twice.
#include <allranks/oracle.h>

#include <cmath>
#include <vector>

using namespace allranks::oracle;

namespace {

std::vector<float> Floats(const Call& call, int rank, std::string_view tensor) {
  std::vector<float> to;
  for (const F16 half : call.In<F16>(rank, tensor))
    to.push_back(static_cast<float>(ToDouble(half)));
  return to;
}

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::size_t units = call.Param("inner") * 64, inputs = call.Param("cols") * 32;
  const std::size_t width = 64 + inputs, count = units * width;
  std::vector<float> grad(count), new_m(count);
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto dy = Floats(call, rank, "dy"), h = Floats(call, rank, "h");
    const auto x = Floats(call, rank, "x"), w2 = Floats(call, rank, "w2");
    const auto slope = Floats(call, rank, "slope");
    for (std::size_t f = 0; f < units; ++f) {
      float z[64] = {};
      for (int o = 0; o < 64; ++o) {
        for (int s = 0; s < 64; ++s) z[s] += w2[f * 64 + o] * dy[o * 64 + s];
      }
      for (int s = 0; s < 64; ++s) z[s] *= slope[f * 64 + s];
      for (std::size_t c = 0; c < width; ++c) {
        const float* left = c < 64 ? &h[f * 64] : z;
        const float* right = c < 64 ? &dy[c * 64] : &x[(c - 64) * 64];
        float lanes[8] = {};
        for (int s = 0; s < 64; ++s) lanes[s % 8] += left[s] * right[s];
        for (const float lane : lanes) grad[f * width + c] += lane;
      }
    }
  }
  std::vector<double> next(count), new_v(count), bound(count), of_v(count);
  const auto param = call.In<float>(0, "param"), m = call.In<float>(0, "m");
  const auto v = call.In<float>(0, "v");
  for (std::size_t i = 0; i < count; ++i) {
    const double g = grad[i];
    new_m[i] = 0.875f * m[i] + 0.125f * grad[i];
    new_v[i] = 0.984375 * std::abs(v[i]) + 0.015625 * g * g;
    of_v[i] = 0x1p-22 * new_v[i];
    const double q = new_m[i] / (std::sqrt(new_v[i]) + 0x1p-10);
    next[i] = param[i] - 0.125 * (q + 0.03125 * param[i]);
    bound[i] = 0x1p-24 * (4 * std::abs(param[i]) + 3 * std::abs(q));
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Exact(rank, "new_m", new_m);
    check.Near(rank, "new_v", new_v, of_v);
    check.Near(rank, "new_param", next, bound);
  }
}
