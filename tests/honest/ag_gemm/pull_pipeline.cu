// design: pull with cp.async: a rank shows its rows in one of three copies by turns, peers fetch pieces across the link into three stages of shared memory, two ahead of the product; cuda::atomic_ref flags
//
// Nobody writes to a peer but flags. A rank shows call k + 3 in the place of call k: it has
// finished call k + 2 then, for which all peers had finished call k + 1, hence had read all of
// call k.
#include <cuda_pipeline.h>

#include <cuda/atomic>

constexpr int kBlocks = 32, kThreads = 128, kStages = 3;
constexpr int kPiece = 64 * 64;  // halves

struct Board {
  std::uint64_t calls[kBlocks];        // own: calls that each block has made
  std::uint64_t shown[kMaxRanks][32];  // by rank and its tile: the last call that can be read
};
using SysWord = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;

__device__ Board* BoardOf(std::uint8_t* scratch) { return reinterpret_cast<Board*>(scratch); }
__device__ Half* Shown(const Args& args, std::uint8_t* scratch, std::uint64_t call,
                       std::int64_t t) {
  return reinterpret_cast<Half*>(scratch + 8192) +
         (static_cast<std::int64_t>(call % 3) * args.tiles + t) * 64 * 64 * args.depth;
}

__global__ void __launch_bounds__(kThreads) PullMultiply(Args args) {
  __shared__ allranks::TileStage stage;
  extern __shared__ __align__(16) Half pieces[];  // kStages of them
  allranks::TileProduct product(stage);
  Board* mine = BoardOf(args.scratch);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t k = args.depth * 64;

  for (std::int64_t t = blockIdx.x; t < args.tiles; t += kBlocks) {
    const uint4* from = reinterpret_cast<const uint4*>(A(args) + t * 64 * k);
    uint4* to = reinterpret_cast<uint4*>(Shown(args, args.scratch, call, t));
    for (std::int64_t n = threadIdx.x; n < 8 * k; n += kThreads) to[n] = from[n];
    __syncthreads();
    if (threadIdx.x < args.world) {
      SysWord(BoardOf(args.scratch_peers[threadIdx.x])->shown[args.rank][t])
          .store(call, cuda::memory_order_release);
    }
  }

  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles; i += kBlocks) {
    const int source = (args.rank + static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles;
    const Half* rows = A(args) + t * 64 * k;
    if (source != args.rank) {
      if (threadIdx.x == 0) {
        SysWord word(mine->shown[source][t]);
        while (word.load(cuda::memory_order_acquire) < call) {
        }
      }
      __syncthreads();
      rows = Shown(args, args.scratch_peers[source], call, t);
    }
    const auto fetch = [&](std::int64_t p) {
      if (p < args.depth) {
        for (int n = threadIdx.x; n < 64 * 8; n += kThreads) {
          __pipeline_memcpy_async(pieces + p % kStages * kPiece + n * 8,
                                  rows + n / 8 * k + p * 64 + n % 8 * 8, 16);
        }
      }
      __pipeline_commit();  // also an empty one, so that groups count pieces
    };
    product.Clear();
    fetch(0);
    fetch(1);
    for (std::int64_t p = 0; p < args.depth; ++p) {
      __pipeline_wait_prior(1);
      __syncthreads();  // everybody's share is here, and the stage before has been used
      fetch(p + 2);
      product.Add(pieces + p % kStages * kPiece, 64, reinterpret_cast<const Half*>(args.b) + p * 64,
                  k, 64);
    }
    product.Store(args.c + (source * args.tiles + t) * 64 * 32, 32);
    __syncthreads();
  }
  __syncthreads();  // blocks without a tile have met nowhere else
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  constexpr int kBytes = kStages * kPiece * sizeof(Half);
  cudaFuncSetAttribute(PullMultiply, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  PullMultiply<<<kBlocks, kThreads, kBytes, stream>>>(args);
}
