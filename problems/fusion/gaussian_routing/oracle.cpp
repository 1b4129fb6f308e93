// Every Gaussian for every camera, in order; what lies behind the last row untouched.
#include <allranks/oracle.h>

#include <algorithm>

using namespace allranks::oracle;

namespace {
struct View {
  std::int32_t u, v, d;
  bool sees() const { return d > 0 && -d <= u && u <= d && -d <= v && v <= d; }
};

View Project(std::span<const std::int32_t> c, const std::int32_t* p) {
  const auto along = [&](int row) {
    return c[4 * row] * p[0] + c[4 * row + 1] * p[1] + c[4 * row + 2] * p[2] + 64 * c[4 * row + 3];
  };
  return {along(0), along(1), along(2)};
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t n = call.Param("n"), width = 4 * call.Param("quads");
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto camera = call.In<std::int32_t>(rank, "camera");
    std::vector<std::int32_t> seen, counts(call.world());
    std::vector<std::uint32_t> rows;
    for (int source = 0; source < call.world(); ++source) {
      const auto points = call.In<std::int32_t>(source, "points");
      const auto attrs = call.In<std::uint32_t>(source, "attrs");
      for (std::int64_t i = 0; i < n; ++i) {
        const View view = Project(camera, &points[4 * i]);
        if (!view.sees()) continue;
        const std::int32_t span = 2 * view.d + 1;
        seen.insert(seen.end(), {(view.u + view.d) * 64 / span, (view.v + view.d) * 64 / span,
                                 view.d, static_cast<std::int32_t>(source * n + i)});
        rows.insert(rows.end(), &attrs[i * width], &attrs[i * width] + width);
        ++counts[source];
      }
    }
    check.Exact(rank, "seen", seen);
    check.Exact(rank, "seen_attrs", rows);
    check.Exact(rank, "counts", counts);
  }
}

// Attributes come from their ranks. What several cameras see may be passed on, so a rank sends a
// Gaussian once at least. Rows of `seen` follow from less than what they hold: they are not
// counted.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t n = call.Param("n");
  std::int64_t came = 0, kept = 0;
  std::vector<bool> left(n);
  for (int source = 0; source < call.world(); ++source) {
    const auto points = call.In<std::int32_t>(source, "points");
    for (int to = 0; to < call.world(); ++to) {
      if (source != rank && to != rank) continue;
      const auto camera = call.In<std::int32_t>(to, "camera");
      for (std::int64_t i = 0; i < n; ++i) {
        if (!Project(camera, &points[4 * i]).sees()) continue;
        if (source != rank) {
          ++came;
        } else if (to != rank) {
          left[i] = true;
        } else {
          ++kept;
        }
      }
    }
  }
  const double bytes = 16.0 * static_cast<double>(call.Param("quads"));
  floor.ingress = bytes * static_cast<double>(came);
  floor.egress = bytes * static_cast<double>(std::count(left.begin(), left.end(), true));
  floor.hbm = floor.egress + (bytes + 16) * static_cast<double>(came + kept) +
              12.0 * static_cast<double>(n);
}
