// design: three kernels and a sense-reversing barrier of all ranks, twice a call: show the rows, multiply straight from the peers' memory, leave; the barrier counts down with cuda::atomic on rank 0
//
// Every rank keeps its sense in its own memory and turns it at each barrier. The last one to come
// fills the count up again and turns the common sense. One copy of the rows suffices: nobody shows
// new ones before all have multiplied the old.
#include <cuda/atomic>

constexpr int kBlocks = 32;

struct Board {
  std::uint32_t sense;                  // own
  alignas(128) std::uint32_t come;      // rank 0's: ranks that have come to this barrier
  alignas(128) std::uint32_t released;  // rank 0's: the common sense
};
using SysRef = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>;

__device__ Board* BoardOf(std::uint8_t* scratch) { return reinterpret_cast<Board*>(scratch); }
__device__ Half* Rows(std::uint8_t* scratch) { return reinterpret_cast<Half*>(scratch + 8192); }

__global__ void BarrierOfRanks(Args args) {
  Board* mine = BoardOf(args.scratch);
  Board* common = BoardOf(args.scratch_peers[0]);
  const std::uint32_t sense = mine->sense ^ 1;
  mine->sense = sense;
  SysRef come(common->come), released(common->released);
  if (come.fetch_add(1, cuda::memory_order_acq_rel) + 1 ==
      static_cast<std::uint32_t>(args.world)) {
    come.store(0, cuda::memory_order_relaxed);
    released.store(sense, cuda::memory_order_release);
  } else {
    while (released.load(cuda::memory_order_acquire) != sense) {
    }
  }
}

__global__ void Show(Args args) {
  const std::int64_t runs = args.tiles * args.depth * 64 * 8;
  const uint4* from = reinterpret_cast<const uint4*>(A(args));
  uint4* to = reinterpret_cast<uint4*>(Rows(args.scratch));
  for (std::int64_t n = blockIdx.x * blockDim.x + threadIdx.x; n < runs;
       n += gridDim.x * blockDim.x)
    to[n] = from[n];
}

__global__ void __launch_bounds__(128) Multiply(Args args) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  const std::int64_t k = args.depth * 64;
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles; i += gridDim.x) {
    const int source = (args.rank + static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles;
    product.Clear();
    product.Add(Rows(args.scratch_peers[source]) + t * 64 * k, k, args.b, k, k);
    product.Store(args.c + (source * args.tiles + t) * 64 * 32, 32);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Show<<<kBlocks, 256, 0, stream>>>(args);
  BarrierOfRanks<<<1, 1, 0, stream>>>(args);
  Multiply<<<kBlocks, 128, 0, stream>>>(args);
  BarrierOfRanks<<<1, 1, 0, stream>>>(args);
}
