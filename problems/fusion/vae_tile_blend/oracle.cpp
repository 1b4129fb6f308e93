// Finished tiles, pixel by pixel; all weights and sums are exact.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {
struct Grid {
  std::int64_t rows, cols, channels, side, edge, world;
  explicit Grid(const Call& call)
      : rows(call.Param("rows")),
        cols(call.Param("cols")),
        channels(call.Param("channels")),
        side(call.Param("side")),
        edge(call.Param("edge")),
        world(call.world()) {}
  // Rows and columns of latents whose pixels belong to the finished tile.
  std::int64_t Height(std::int64_t tile) const {
    return tile / cols + 1 < rows ? side - edge : side;
  }
  std::int64_t Width(std::int64_t tile) const {
    return tile % cols + 1 < cols ? side - edge : side;
  }
};
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const Grid grid(call);
  const std::int64_t pixels = 2 * grid.side, step = grid.side - grid.edge;
  const auto row = [&](std::int64_t tile, std::int64_t channel, std::int64_t y) {
    const auto rank = static_cast<int>(tile % grid.world);
    const std::int64_t plane = tile / grid.world * grid.channels + channel;
    return &call.In<float>(rank, "latent")[(plane * grid.side + y) * grid.side];
  };
  std::vector<std::int64_t> finished(grid.world);  // elements of out that were compared
  std::vector<float> line(pixels), above(pixels);
  // Row y of pixels of a tile, blended with the tile to its left.
  const auto blend = [&](std::int64_t tile, std::int64_t channel, std::int64_t y,
                         std::vector<float>& to) {
    const float* own = row(tile, channel, y / 2);
    const float* left = tile % grid.cols > 0 ? row(tile - 1, channel, y / 2) + step : nullptr;
    for (std::int64_t x = 0; x < pixels; ++x) {
      to[x] = own[x / 2];
      if (left == nullptr || x >= 2 * grid.edge) continue;
      const float h = static_cast<float>(x) / static_cast<float>(2 * grid.edge);
      to[x] = h * to[x] + (1 - h) * left[x / 2];
    }
  };
  for (std::int64_t tile = 0; tile < grid.rows * grid.cols; ++tile) {
    const auto rank = static_cast<int>(tile % grid.world);
    const std::int64_t height = 2 * grid.Height(tile), width = 2 * grid.Width(tile);
    for (std::int64_t c = 0; c < grid.channels; ++c) {
      const std::int64_t plane = (tile / grid.world * grid.channels + c) * pixels * pixels;
      for (std::int64_t y = 0; y < height; ++y) {
        blend(tile, c, y, line);
        if (tile >= grid.cols && y < 2 * grid.edge) {
          blend(tile - grid.cols, c, y + 2 * step, above);
          const float v = static_cast<float>(y) / static_cast<float>(2 * grid.edge);
          for (std::int64_t x = 0; x < width; ++x) line[x] = v * line[x] + (1 - v) * above[x];
        }
        const std::int64_t at = plane + y * pixels;
        check.ExactAt<float>(rank, "out", at, {line.data(), static_cast<std::size_t>(width)});
        check.Untouched(rank, "out", at + width, at + pixels);
      }
      check.Untouched(rank, "out", plane + height * pixels, plane + pixels * pixels);
      finished[rank] = plane + pixels * pixels;
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) check.Untouched(rank, "out", finished[rank]);
}

// Latents of edges that lie on another rank come over a link, at least a byte each: they have 11
// bits. Memory: latents and pixels of the finished tiles.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const Grid grid(call);
  std::int64_t edges = 0, latents = 0;
  for (std::int64_t tile = rank; tile < grid.rows * grid.cols; tile += grid.world) {
    const bool top = tile >= grid.cols, left = tile % grid.cols > 0;
    const auto add = [&](bool exists, std::int64_t distance, std::int64_t size) {
      if (exists && distance % grid.world != 0) edges += grid.channels * size;
    };
    add(left, 1, grid.edge * grid.Height(tile));
    add(top, grid.cols, grid.edge * grid.Width(tile));
    add(left && top, grid.cols + 1, grid.edge * grid.edge);
    latents += grid.channels * grid.Height(tile) * grid.Width(tile);
  }
  floor.ingress = static_cast<double>(edges);
  floor.hbm = static_cast<double>(20 * latents);
}
