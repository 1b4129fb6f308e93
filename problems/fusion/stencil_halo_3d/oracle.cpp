// The stencil in float: integers so small that sums are exact in any order.
#include <allranks/oracle.h>

#include <vector>

using namespace allranks::oracle;

// Ranks in the directions x, y, z.
struct Grid {
  explicit Grid(std::int64_t world)
      : z(world == 8 ? 2 : 1), y(world > 2 && world % 2 == 0 ? 2 : 1), x(world / y / z) {}
  std::int64_t z, y, x;
};

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t nx = call.Param("nx"), ny = call.Param("ny"), nz = call.Param("nz");
  const Grid grid(call.world());
  std::vector<const float*> boxes;
  for (int rank = 0; rank < call.world(); ++rank) boxes.push_back(call.In<float>(rank, "u").data());
  std::vector<float> v(nx * ny * nz);
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto c = call.In<float>(rank, "c");
    // The box of this rank or of a neighbour, where -1 and n lie in the neighbours' boxes.
    const auto at = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
      x = (x + (rank % grid.x + grid.x) * nx) % (grid.x * nx);
      y = (y + (rank / grid.x % grid.y + grid.y) * ny) % (grid.y * ny);
      z = (z + (rank / grid.x / grid.y + grid.z) * nz) % (grid.z * nz);
      const std::int64_t owner = (z / nz * grid.y + y / ny) * grid.x + x / nx;
      return boxes[owner][(z % nz * ny + y % ny) * nx + x % nx];
    };
    const float* u = boxes[rank];
    for (std::int64_t z = 0, i = 0; z < nz; ++z) {
      for (std::int64_t y = 0; y < ny; ++y) {
        for (std::int64_t x = 0; x < nx; ++x, ++i) {
          const bool inside = x > 0 && x + 1 < nx && y > 0 && y + 1 < ny && z > 0 && z + 1 < nz;
          const std::int64_t row = nx, plane = nx * ny;
          v[i] = inside ? c[0] * u[i] + c[1] * u[i - 1] + c[2] * u[i + 1] + c[3] * u[i - row] +
                              c[4] * u[i + row] + c[5] * u[i - plane] + c[6] * u[i + plane]
                        : c[0] * u[i] + c[1] * at(x - 1, y, z) + c[2] * at(x + 1, y, z) +
                              c[3] * at(x, y - 1, z) + c[4] * at(x, y + 1, z) +
                              c[5] * at(x, y, z - 1) + c[6] * at(x, y, z + 1);
        }
      }
    }
    check.Exact(rank, "v", v);
  }
}

// Faces in directions with a single rank stay where they are.
extern "C" void Floors(const Call& call, int, Floor& floor) {
  const std::int64_t nx = call.Param("nx"), ny = call.Param("ny"), nz = call.Param("nz");
  const Grid grid(call.world());
  const std::int64_t cells =
      (grid.x > 1) * ny * nz + (grid.y > 1) * nx * nz + (grid.z > 1) * nx * ny;
  floor.ingress = floor.egress = floor.busiest = 8.0 * static_cast<double>(cells);
}
