// Transforms in double, rows and then columns. The error of a float transform is bounded in the
// norm over all results: for each of the log2(h w) levels by u_w + gamma_4 (sqrt 2 + u_w) of the
// norm (Higham, section 24.1), less than 8 * 2^-24 with factors that are exact to u_w = 2^-23. Two
// more levels are for taking two real rows apart. The statement allows twice that. Errors
// of single results cannot be larger than the norm.
#include <allranks/oracle.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

using namespace allranks::oracle;
using Complex = std::complex<double>;

// One line, by radix 2; `turns` are the factors of a line of turns.size() numbers.
static void Transform(std::vector<Complex>& a, const std::vector<Complex>& turns) {
  const std::size_t n = a.size();
  std::vector<Complex> b(n);
  for (std::size_t done = 1; done < n; done *= 2) {
    for (std::size_t j = 0; j < n / 2; ++j) {
      const std::size_t k = j % done, to = (j - k) * 2 + k;
      const Complex t = turns[k * (turns.size() / (2 * done))], v = a[j + n / 2];
      const Complex q(v.real() * t.real() - v.imag() * t.imag(),
                      v.real() * t.imag() + v.imag() * t.real());
      b[to] = a[j] + q;
      b[to + done] = a[j] - q;
    }
    a.swap(b);
  }
}

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t batch = call.Param("batch"), h = call.Param("h"), w = call.Param("w");
  const std::int64_t world = call.world(), rows = (h + 2 * world - 1) / (2 * world) * 2;
  const std::int64_t cols = (w / 2 + world) / world;
  std::vector<Complex> turns(256), row(w), column(h), spectrum(h * (w / 2 + 1));
  for (int i = 0; i < 256; ++i) turns[i] = std::polar(1.0, -2 * std::numbers::pi * i / 256);
  std::vector<double> expected(2 * h), bound(2 * h);
  for (std::int64_t b = 0; b < batch; ++b) {
    double squares = 0, errors = 0;
    for (std::int64_t n = 0; n < h; ++n) {
      const auto x = call.In<float>(static_cast<int>(n / rows), "x");
      for (std::int64_t m = 0; m < w; ++m) {
        row[m] = x[(b * rows + n % rows) * w + m];
        squares += std::norm(row[m]);
      }
      Transform(row, turns);
      for (std::int64_t l = 0; l <= w / 2; ++l) spectrum[l * h + n] = row[l];
    }
    const double limit = 16 * (std::log2(h) + std::log2(w) + 2) * 0x1p-24 *
                         std::sqrt(static_cast<double>(h * w) * squares);
    bound.assign(2 * h, limit);
    for (int rank = 0; rank < world; ++rank) {
      for (std::int64_t c = 0; c < cols; ++c) {
        const std::int64_t l = rank * cols + c, at = (b * cols + c) * h * 2;
        if (l > w / 2) {
          check.Untouched(rank, "out", at, at + 2 * h);
          continue;
        }
        column.assign(&spectrum[l * h], &spectrum[l * h] + h);
        Transform(column, turns);
        for (std::int64_t k = 0; k < h; ++k) {
          expected[2 * k] = column[k].real();
          expected[2 * k + 1] = column[k].imag();
        }
        check.NearAt(rank, "out", at, expected, bound);
        const auto out = check.Out<float>(rank, "out");
        for (std::int64_t i = 0; i < 2 * h; ++i) {
          errors += (out[at + i] - expected[i]) * (out[at + i] - expected[i]);
        }
      }
    }
    if (check.wrong_count() == 0 && !(std::sqrt(errors) <= limit)) {
      check.Wrong(0, "out", b * cols * h * 2, "errors of the image below " + Text(limit),
                  Text(std::sqrt(errors)));
    }
  }
}

// Of the first and the last column only real parts need to travel.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t h = call.Param("h"), w = call.Param("w"), world = call.world();
  const std::int64_t rows = (h + 2 * world - 1) / (2 * world) * 2, cols = (w / 2 + world) / world;
  const std::int64_t own = std::clamp<std::int64_t>(h - rank * rows, 0, rows);
  const std::int64_t end = std::min((rank + 1) * cols, w / 2 + 1);
  const std::int64_t here = std::max<std::int64_t>(end - rank * cols, 0);
  const std::int64_t real = here == 0 ? 0 : (rank == 0) + (end == w / 2 + 1);
  const std::int64_t batch = call.Param("batch");
  floor.ingress = static_cast<double>(batch * (h - own) * (8 * here - 4 * real));
  floor.egress = static_cast<double>(batch * own * (8 * (w / 2 + 1 - here) - 4 * (2 - real)));
  floor.hbm = static_cast<double>(batch * (own * w * 4 + here * h * 8));
  floor.hops = floor.ingress > 0 ? 1 : 0;
}
