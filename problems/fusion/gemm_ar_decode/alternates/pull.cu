#include <allranks/flags.h>
#include <allranks/tile_mma.h>

// Every rank keeps its part in its own memory and tells all others; they read it across the links.
// Parts exist twice, by turns: who tells of call k + 1 has ended call k, and so has read its parts.
constexpr int kMaxBlocks = 32, kFloats = 64 * 32;

// The tokens of a tile, at `to`, 32 floats each, through shared memory.
__device__ void Multiply(const Args& args, allranks::TileProduct& product, float* tile,
                         std::int64_t col, float* to) {
  const std::int64_t k = args.depth * 64;
  product.Clear();
  product.Add(args.a, k, reinterpret_cast<const std::uint16_t*>(args.b) + col * 32 * k, k, k);
  __syncthreads();
  product.Store(tile, 32);
  __syncthreads();
  for (int n = threadIdx.x; n < args.tokens * 32; n += 128) to[n] = tile[n];
}

struct Board {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t ready[kMaxBlocks]
                     [kMaxRanks];  // by block and rank: the last call whose parts are there
};

__device__ float* Part(const Args& args, int at, std::int64_t col, std::uint32_t call) {
  return reinterpret_cast<float*>(args.scratch_peers[at] + 8192) +
         (call % 2 * args.cols + col) * args.tokens * 32;
}

__global__ void __launch_bounds__(128) MultiplyReduce(Args args) {
  __shared__ allranks::TileStage stage;
  __shared__ alignas(16) float tile[kFloats];
  allranks::TileProduct product(stage);
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  for (std::int64_t col = blockIdx.x; col < args.cols; col += gridDim.x) {
    Multiply(args, product, tile, col, Part(args, args.rank, col, call));
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&theirs->ready[blockIdx.x][args.rank], call);
    allranks::WaitAcquireSys(&mine->ready[blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
  for (std::int64_t col = blockIdx.x; col < args.cols; col += gridDim.x) {
    for (int n = threadIdx.x; n < args.tokens * 8; n += 128) {
      float4 sum = {0, 0, 0, 0};
      for (int r = 0; r < args.world; ++r) {
        const float4 v = reinterpret_cast<const float4*>(Part(args, r, col, call))[n];
        sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
      }
      reinterpret_cast<float4*>(args.c)[n / 8 * args.cols * 8 + col * 8 + n % 8] = sum;
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = static_cast<int>(args.cols < kMaxBlocks ? args.cols : kMaxBlocks);
  MultiplyReduce<<<blocks, 128, 0, stream>>>(args);
}
