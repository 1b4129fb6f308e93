#include <allranks/flags.h>
#include <allranks/tile_mma.h>

// In two shots: tile `col` has an owner, the rank col % world. All ranks send it their parts, it
// adds up and sends the sums to all. Parts and sums exist once: a rank leaves a call when it has
// heard of all sums, so the owners have read its parts; and an owner sends sums after all have told
// of their parts of this call, so have read the sums of the last one.
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
  std::uint32_t arrived[2][kMaxBlocks][kMaxRanks];  // by shot, block and rank: the last call
};

__device__ float* Slot(const Args& args, int at, int set, std::int64_t col) {
  return reinterpret_cast<float*>(args.scratch_peers[at] + 8192) +
         (set * args.cols + col) * args.tokens * 32;
}

__device__ void Meet(const Args& args, int shot, std::uint32_t call) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Board* mine = reinterpret_cast<Board*>(args.scratch);
    Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&theirs->arrived[shot][blockIdx.x][args.rank], call);
    allranks::WaitAcquireSys(&mine->arrived[shot][blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(128) MultiplyReduce(Args args) {
  __shared__ allranks::TileStage stage;
  __shared__ alignas(16) float tile[kFloats];
  allranks::TileProduct product(stage);
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  for (std::int64_t col = blockIdx.x; col < args.cols; col += gridDim.x) {
    Multiply(args, product, tile, col, Slot(args, col % args.world, args.rank, col));
  }
  Meet(args, 0, call);
  for (std::int64_t col = blockIdx.x; col < args.cols; col += gridDim.x) {
    if (col % args.world != args.rank) continue;
    for (int n = threadIdx.x; n < args.tokens * 8; n += 128) {
      float4 sum = {0, 0, 0, 0};
      for (int r = 0; r < args.world; ++r) {
        const float4 v = reinterpret_cast<const float4*>(Slot(args, args.rank, r, col))[n];
        sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
      }
      for (int r = 0; r < args.world; ++r) {
        reinterpret_cast<float4*>(Slot(args, r, args.world, col))[n] = sum;
      }
    }
  }
  Meet(args, 1, call);
  for (std::int64_t col = blockIdx.x; col < args.cols; col += gridDim.x) {
    const float4* sums = reinterpret_cast<const float4*>(Slot(args, args.rank, args.world, col));
    for (int n = threadIdx.x; n < args.tokens * 8; n += 128) {
      reinterpret_cast<float4*>(args.c)[n / 8 * args.cols * 8 + col * 8 + n % 8] = sums[n];
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = static_cast<int>(args.cols < kMaxBlocks ? args.cols : kMaxBlocks);
  MultiplyReduce<<<blocks, 128, 0, stream>>>(args);
}
