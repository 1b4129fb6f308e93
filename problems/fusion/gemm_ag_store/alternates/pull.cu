#include <allranks/flags.h>
#include <allranks/tile_mma.h>

// Every rank multiplies into its own output only; the others read it from there. The flag that a
// block's tiles are there also says that the rank is inside the call; it leaves when all have told
// that they have read them.
constexpr int kMaxBlocks = 32, kFloats = 64 * 32;

struct Board {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t steps[kMaxBlocks][kMaxRanks];  // 2 * call - 1: has multiplied; 2 * call: has read
};

__device__ void Meet(const Args& args, std::uint32_t step) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Board* mine = reinterpret_cast<Board*>(args.scratch);
    Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&theirs->steps[blockIdx.x][args.rank], step);
    allranks::WaitAcquireSys(&mine->steps[blockIdx.x][threadIdx.x], step);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(128) MultiplyGather(Args args) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t k = args.depth * 64;
  for (std::int64_t t = blockIdx.x; t < args.tiles; t += gridDim.x) {
    product.Clear();
    product.Add(reinterpret_cast<const std::uint16_t*>(args.a) + t * 64 * k, k, args.b, k, k);
    product.Store(args.c + (args.rank * args.tiles + t) * kFloats, 32);
  }
  Meet(args, 2 * call - 1);
  for (std::int64_t t = blockIdx.x; t < args.tiles; t += gridDim.x) {
    for (int n = threadIdx.x; n < kFloats / 4; n += 128) {
#pragma unroll
      for (int step = 1; step < kMaxRanks; ++step) {
        if (step >= args.world) break;
        const int from = (args.rank + step) % args.world;
        const std::int64_t place = (from * args.tiles + t) * (kFloats / 4) + n;
        reinterpret_cast<float4*>(args.c)[place] =
            reinterpret_cast<const float4*>(args.c_peers[from])[place];
      }
    }
  }
  Meet(args, 2 * call);
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = static_cast<int>(args.tiles < kMaxBlocks ? args.tiles : kMaxBlocks);
  MultiplyGather<<<blocks, 128, 0, stream>>>(args);
}
