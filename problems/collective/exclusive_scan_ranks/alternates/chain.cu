// In two kernels, with a chain of ranks: the first kernel adds up tiles; the last of its blocks to
// finish has the sum of the rank, waits for the prefix of the rank below, and sends prefix plus sum
// to the rank above. The second kernel scans the tiles. A prefix is acknowledged by the receiver,
// so that the rank below cannot overwrite it in the next call.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 256, kTile = 1024, kMaxBlocks = 64;

struct Control {
  std::uint64_t prefix;  // written by the rank below: call, sum of all ranks below
  std::uint32_t taken;   // written by the rank above: the last call whose prefix it has read
  std::uint32_t finished, calls;
  std::uint32_t base;
  std::uint32_t sums[kMaxBlocks];
};

__device__ std::uint32_t SumOfBlock(std::uint32_t value) {
  __shared__ std::uint32_t sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, value);
  __syncthreads();
  return sum;
}

__global__ void __launch_bounds__(kThreads) Sum(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  std::uint32_t value = 0;
  const std::int64_t first = blockIdx.x * kTile;
  for (std::int64_t i = first + threadIdx.x; i < first + kTile && i < args.n; i += kThreads) {
    value += args.in[i];
  }
  const std::uint32_t sum = SumOfBlock(value);
  if (threadIdx.x != 0) return;
  mine->sums[blockIdx.x] = sum;
  if (FetchAddAcqRelGpu(&mine->finished, 1u) != gridDim.x - 1) return;
  const std::uint32_t call = mine->calls + 1;
  std::uint32_t base = 0;
  if (args.rank > 0) {
    std::uint64_t word;
    do {
      word = LoadRelaxedSys(&mine->prefix);
    } while (word >> 32 != call);
    base = static_cast<std::uint32_t>(word);
    Control* below = reinterpret_cast<Control*>(args.scratch_peers[args.rank - 1]);
    StoreRelaxedSys(&below->taken, call);
  }
  mine->base = base;
  for (int b = 0; b < gridDim.x; ++b) base += mine->sums[b];
  if (args.rank + 1 < args.world) {
    WaitRelaxedSys(&mine->taken, call - 1);
    Control* above = reinterpret_cast<Control*>(args.scratch_peers[args.rank + 1]);
    StoreRelaxedSys(&above->prefix, std::uint64_t{call} << 32 | base);
  }
  mine->finished = 0;
  mine->calls = call;
}

__global__ void __launch_bounds__(kThreads) Scan(Args args) {
  __shared__ std::uint32_t of_warp[kThreads / 32];
  const Control* mine = reinterpret_cast<const Control*>(args.scratch);
  const std::int64_t first = blockIdx.x * kTile + 4 * threadIdx.x;
  std::uint32_t x[4], sum = 0;
  for (int k = 0; k < 4; ++k) sum += x[k] = first + k < args.n ? args.in[first + k] : 0;
  std::uint32_t running = sum;  // of this thread and those below it in its warp
  for (int d = 1; d < 32; d *= 2) {
    const std::uint32_t below = __shfl_up_sync(~0u, running, d);
    if (threadIdx.x % 32 >= d) running += below;
  }
  if (threadIdx.x % 32 == 31) of_warp[threadIdx.x / 32] = running;
  __syncthreads();
  running += mine->base - sum;
  for (int w = 0; w < threadIdx.x / 32; ++w) running += of_warp[w];
  for (int b = 0; b < blockIdx.x; ++b) running += mine->sums[b];
  for (int k = 0; k < 4; ++k) {
    if (first + k < args.n) args.out[first + k] = running;
    running += x[k];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = (args.n + kTile - 1) / kTile;
  Sum<<<blocks, kThreads, 0, stream>>>(args);
  Scan<<<blocks, kThreads, 0, stream>>>(args);
}
