// Matrix transposes: naive, tiled with padding against bank conflicts, tiled with an exclusive-or
// swizzle, and in place by pairs of tiles; sizes that are no multiple of the tile.
#include "arrays.h"

namespace {

constexpr int kTile = 32, kRows = 8;

__global__ void Naive(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * kTile + threadIdx.x;
  for (int y = blockIdx.y * kTile + threadIdx.y; y < (static_cast<int>(blockIdx.y) + 1) * kTile;
       y += kRows) {
    if (x < width && y < height) out[x * height + y] = in[y * width + x];
  }
}

template <bool kSwizzle>
__global__ void Tiled(const float* in, float* out, int width, int height) {
  __shared__ float tile[kTile][kTile + (kSwizzle ? 0 : 1)];
  const int tx = threadIdx.x;
  for (int ty = threadIdx.y; ty < kTile; ty += kRows) {
    const int x = blockIdx.x * kTile + tx, y = blockIdx.y * kTile + ty;
    if (x < width && y < height) tile[ty][kSwizzle ? tx ^ ty : tx] = in[y * width + x];
  }
  __syncthreads();
  for (int ty = threadIdx.y; ty < kTile; ty += kRows) {
    const int x = blockIdx.y * kTile + tx, y = blockIdx.x * kTile + ty;
    if (x < height && y < width) out[y * height + x] = tile[tx][kSwizzle ? ty ^ tx : ty];
  }
}

__global__ void InPlace(float* data, int width) {
  __shared__ float low[kTile][kTile + 1], high[kTile][kTile + 1];
  if (blockIdx.x < blockIdx.y) return;
  const int tx = threadIdx.x, x = blockIdx.x * kTile, y = blockIdx.y * kTile;
  for (int ty = threadIdx.y; ty < kTile; ty += kRows) {
    if (y + ty < width && x + tx < width) low[ty][tx] = data[(y + ty) * width + x + tx];
    if (x + ty < width && y + tx < width) high[ty][tx] = data[(x + ty) * width + y + tx];
  }
  __syncthreads();
  for (int ty = threadIdx.y; ty < kTile; ty += kRows) {
    if (x + ty < width && y + tx < width) data[(x + ty) * width + y + tx] = low[tx][ty];
    if (y + ty < width && x + tx < width) data[(y + ty) * width + x + tx] = high[tx][ty];
  }
}

}  // namespace

int main() {
  const dim3 threads(kTile, kRows);
  for (const auto& [width, height] : {std::pair(32, 32), {33, 31}, {100, 70}, {1, 95}, {65, 65}}) {
    std::vector<float> in, expected(width * height);
    for (int i = 0; i < width * height; ++i) {
      in.push_back(static_cast<float>(i) + 0.5f);
      expected[i % width * height + i / width] = in[i];
    }
    const dim3 blocks((width + kTile - 1) / kTile, (height + kTile - 1) / kTile);
    float* source = ToDevice(in);
    float* out = Unwritten<float>(in.size());
    Naive<<<blocks, threads>>>(source, out, width, height);
    REQUIRE_SAME(ToHost(out, in.size()), expected);
    CUDA_CHECK(cudaMemset(out, 0, in.size() * sizeof(float)));
    Tiled<false><<<blocks, threads>>>(source, out, width, height);
    REQUIRE_SAME(ToHost(out, in.size()), expected);
    CUDA_CHECK(cudaMemset(out, 0, in.size() * sizeof(float)));
    Tiled<true><<<blocks, threads>>>(source, out, width, height);
    REQUIRE_SAME(ToHost(out, in.size()), expected);
    if (width != height) continue;
    InPlace<<<blocks, threads>>>(source, width);
    REQUIRE_SAME(ToHost(source, in.size()), expected);
  }
  std::puts("PASS transpose");
}
