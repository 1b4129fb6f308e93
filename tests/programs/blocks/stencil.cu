// Game of life on a torus: blocks load a tile with its halo into shared memory, two buffers take
// turns over many launches in one stream, and a glider must come back to where it started.
#include "arrays.h"

namespace {

constexpr int kSide = 40, kTile = 16;

__global__ void Step(const unsigned char* in, unsigned char* out) {
  __shared__ unsigned char tile[kTile + 2][kTile + 2];
  const int left = blockIdx.x * kTile - 1, top = blockIdx.y * kTile - 1;
  const int thread = threadIdx.y * kTile + threadIdx.x;
  for (int i = thread; i < (kTile + 2) * (kTile + 2); i += kTile * kTile) {
    const int x = (left + i % (kTile + 2) + kSide) % kSide,
              y = (top + i / (kTile + 2) + kSide) % kSide;
    tile[i / (kTile + 2)][i % (kTile + 2)] = in[y * kSide + x];
  }
  __syncthreads();
  const int x = left + 1 + threadIdx.x, y = top + 1 + threadIdx.y;
  if (x >= kSide || y >= kSide) return;
  int neighbours = 0;
  for (int dy = 0; dy < 3; ++dy) {
    for (int dx = 0; dx < 3; ++dx) neighbours += tile[threadIdx.y + dy][threadIdx.x + dx];
  }
  const bool alive = tile[threadIdx.y + 1][threadIdx.x + 1];
  neighbours -= alive;
  out[y * kSide + x] = neighbours == 3 || (alive && neighbours == 2);
}

std::vector<unsigned char> HostStep(const std::vector<unsigned char>& in) {
  std::vector<unsigned char> out(in.size());
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      int neighbours = 0;
      for (int i = 0; i < 9; ++i) {
        if (i == 4) continue;
        neighbours += in[(y + i / 3 - 1 + kSide) % kSide * kSide + (x + i % 3 - 1 + kSide) % kSide];
      }
      out[y * kSide + x] = neighbours == 3 || (in[y * kSide + x] && neighbours == 2);
    }
  }
  return out;
}

std::vector<unsigned char> Run(const std::vector<unsigned char>& start, int steps) {
  unsigned char* from = ToDevice(start);
  unsigned char* to = Unwritten<unsigned char>(start.size());
  const dim3 blocks((kSide + kTile - 1) / kTile, (kSide + kTile - 1) / kTile),
      threads(kTile, kTile);
  for (int step = 0; step < steps; ++step) {
    Step<<<blocks, threads>>>(from, to);
    std::swap(from, to);
  }
  return ToHost(from, start.size());
}

}  // namespace

int main() {
  std::vector<unsigned char> glider(kSide * kSide, 0), soup;
  for (const auto& [x, y] : {std::pair(1, 0), {2, 1}, {0, 2}, {1, 2}, {2, 2}})
    glider[y * kSide + x] = 1;
  // A glider moves one cell down and right in four steps.
  REQUIRE_SAME(Run(glider, 4 * kSide), glider);
  Random random(23);
  for (int i = 0; i < kSide * kSide; ++i) soup.push_back(random.Next() % 3 == 0);
  std::vector<unsigned char> expected = soup;
  for (int step = 0; step < 31; ++step) expected = HostStep(expected);
  REQUIRE_SAME(Run(soup, 31), expected);
  std::puts("PASS stencil");
}
