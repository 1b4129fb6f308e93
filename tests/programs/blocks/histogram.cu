// Histograms of bytes: atomics on global memory, one histogram per block in shared memory, one per
// warp, and one per thread in local memory; with even and with very uneven data.
#include "arrays.h"

namespace {

constexpr int kBins = 256, kThreads = 128;

__global__ void Global(const unsigned char* data, int count, unsigned* bins) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&bins[data[i]], 1);
  }
}

__global__ void PerBlock(const unsigned char* data, int count, unsigned* bins) {
  __shared__ unsigned mine[kBins];
  for (int i = threadIdx.x; i < kBins; i += kThreads) mine[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&mine[data[i]], 1);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += kThreads) {
    if (mine[i]) atomicAdd(&bins[i], mine[i]);
  }
}

// Sixteen-bit counters, two in a word: the carry must not reach the neighbour.
__global__ void PerWarp(const uchar4* data, int count4, unsigned* bins) {
  __shared__ unsigned mine[kThreads / 32][kBins / 2];
  unsigned* warp = mine[threadIdx.x / 32];
  for (int i = threadIdx.x; i < kThreads / 32 * kBins / 2; i += kThreads) mine[0][i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count4; i += gridDim.x * blockDim.x) {
    const uchar4 four = data[i];
    for (const unsigned char byte : {four.x, four.y, four.z, four.w}) {
      atomicAdd(&warp[byte / 2], byte % 2 ? 0x10000u : 1u);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += kThreads) {
    unsigned sum = 0;
    for (int w = 0; w < kThreads / 32; ++w) sum += mine[w][i / 2] >> (i % 2 * 16) & 0xffff;
    atomicAdd(&bins[i], sum);
  }
}

__global__ void PerThread(const unsigned char* data, int count, unsigned* bins) {
  unsigned char mine[kBins];
  for (int i = 0; i < kBins; ++i) mine[i] = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    ++mine[data[i]];
  }
  for (int i = 0; i < kBins; ++i) {
    if (mine[i]) atomicAdd(&bins[i], mine[i]);
  }
}

}  // namespace

int main() {
  constexpr int kCount = 20000;
  for (int kind = 0; kind < 3; ++kind) {
    Random random(kind);
    std::vector<unsigned char> data;
    std::vector<unsigned> expected(kBins, 0);
    for (int i = 0; i < kCount; ++i) {
      const unsigned value = random.Next();
      data.push_back(kind == 0   ? value % 256
                     : kind == 1 ? (value % 256) * (value / 256 % 256) / 256
                                 : 255);
      ++expected[data.back()];
    }
    const unsigned char* in = ToDevice(data);
    unsigned* bins = Zeroed<unsigned>(kBins * 4);
    Global<<<5, kThreads>>>(in, kCount, bins);
    PerBlock<<<5, kThreads>>>(in, kCount, bins + kBins);
    PerWarp<<<5, kThreads>>>(reinterpret_cast<const uchar4*>(in), kCount / 4, bins + kBins * 2);
    PerThread<<<5, kThreads>>>(in, kCount, bins + kBins * 3);
    for (int variant = 0; variant < 4; ++variant) {
      REQUIRE_SAME(ToHost(bins + kBins * variant, kBins), expected);
    }
  }
  std::puts("PASS histogram: 4 variants");
}
