// design: all blocks push slices of A, the last one by a ticket tells every peer with one flag per rank; then blocks draw tiles to multiply from a counter
//
// The ticket is an acq_rel addition of gpu scope: the last block knows what all have written and
// releases it at system scope. Drawing begins with the own rows and goes on with those of the left
// neighbour. Both counters of draws are used by turns: one is cleared while the other is in use.
#include <cuda/atomic>

constexpr int kBlocks = 32, kThreads = 128;

struct Board {
  std::uint32_t call;             // own: calls that have ended
  std::uint32_t pushed;           // own: blocks that have pushed, ever
  std::uint32_t multiplied;       // own: blocks that have drawn their last tile, ever
  std::uint32_t draws[2];         // own
  std::uint32_t ready[kMaxRanks]; // by source: the call whose rows are here
};
using GpuRef = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device>;
using SysRef = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>;

__device__ Board* BoardOf(std::uint8_t* scratch) { return reinterpret_cast<Board*>(scratch); }
__device__ Half* Gathered(const Args& args, std::uint8_t* scratch, std::uint32_t call,
                          std::int64_t tile) {
  return reinterpret_cast<Half*>(scratch + 8192) +
         (call % 2 * args.world * args.tiles + tile) * 64 * 64 * args.depth;
}

__global__ void __launch_bounds__(kThreads) GatherMultiply(Args args) {
  __shared__ allranks::TileStage stage;
  __shared__ std::uint32_t drawn;
  allranks::TileProduct product(stage);
  Board* mine = BoardOf(args.scratch);
  const std::uint32_t call = mine->call + 1;
  const std::int64_t k = args.depth * 64, runs = args.tiles * 64 * k / 8;

  const uint4* from = reinterpret_cast<const uint4*>(A(args));
  for (int d = 1; d < args.world; ++d) {
    const int peer = (args.rank + d) % args.world;
    uint4* to = reinterpret_cast<uint4*>(
        Gathered(args, args.scratch_peers[peer], call, args.rank * args.tiles));
    for (std::int64_t n = blockIdx.x * kThreads + threadIdx.x; n < runs; n += kBlocks * kThreads)
      to[n] = from[n];
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) {
    const std::uint32_t ticket = GpuRef(mine->pushed).fetch_add(1, cuda::memory_order_acq_rel);
    if (ticket + 1 == call * kBlocks) {
      for (int d = 1; d < args.world; ++d) {
        Board* theirs = BoardOf(args.scratch_peers[(args.rank + d) % args.world]);
        SysRef(theirs->ready[args.rank]).store(call, cuda::memory_order_release);
      }
    }
  }

  const auto total = static_cast<std::uint32_t>(args.world * args.tiles);
  for (;;) {
    if (threadIdx.x == 0)
      drawn = GpuRef(mine->draws[call % 2]).fetch_add(1, cuda::memory_order_relaxed);
    __syncthreads();
    const std::uint32_t i = drawn;
    __syncthreads();
    if (i >= total) break;
    const int source = (args.rank + args.world - static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles, tile = source * args.tiles + t;
    const Half* rows = A(args) + t * 64 * k;
    if (source != args.rank) {
      if (threadIdx.x == 0) {
        SysRef ready(mine->ready[source]);
        while (static_cast<std::int32_t>(ready.load(cuda::memory_order_acquire) - call) < 0) {
        }
      }
      __syncthreads();
      rows = Gathered(args, args.scratch, call, tile);
    }
    product.Clear();
    product.Add(rows, k, args.b, k, k);
    product.Store(args.c + tile * 64 * 32, 32);
  }
  // The last block prepares the next call; all have read `call` and left the other counter alone.
  if (threadIdx.x == 0) {
    const std::uint32_t ticket = GpuRef(mine->multiplied).fetch_add(1, cuda::memory_order_acq_rel);
    if (ticket + 1 == call * kBlocks) {
      mine->draws[(call + 1) % 2] = 0;
      mine->call = call;
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  GatherMultiply<<<kBlocks, kThreads, 0, stream>>>(args);
}
