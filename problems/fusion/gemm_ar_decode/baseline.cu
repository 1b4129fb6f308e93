#include <allranks/flags.h>
#include <allranks/tile_mma.h>

// One kernel multiplies, all ranks meet, one kernel adds up what it reads from all, all meet again.
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
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t arrived[kMaxRanks];  // by rank: the last meeting that it has come to
};

__global__ void __launch_bounds__(128) Product(Args args) {
  __shared__ allranks::TileStage stage;
  __shared__ alignas(16) float tile[kFloats];
  allranks::TileProduct product(stage);
  float* parts = reinterpret_cast<float*>(args.scratch + 8192);
  for (std::int64_t col = blockIdx.x; col < args.cols; col += gridDim.x) {
    Multiply(args, product, tile, col, parts + col * args.tokens * 32);
  }
}

__global__ void Meet(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  if (threadIdx.x < args.world) {
    Board* peer = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->arrived[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->arrived[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Sum(Args args) {
  const std::int64_t width = args.cols * 32;
  for (std::int64_t i = blockIdx.x * 128 + threadIdx.x; i < args.tokens * width;
       i += gridDim.x * 128) {
    const std::int64_t row = i / width, col = i % width / 32;
    float sum = 0;
    for (int r = 0; r < args.world; ++r) {
      const float* parts = reinterpret_cast<const float*>(args.scratch_peers[r] + 8192);
      sum += parts[(col * args.tokens + row) * 32 + i % 32];
    }
    args.c[i] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Product<<<16, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<16, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
