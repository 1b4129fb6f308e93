// With flags and fences: a block stores its sum into a table at every rank and releases a flag to
// it; who has acquired all flags adds up the table. Tables exist twice, used in turn; everybody
// waits for everybody, so nobody is two calls ahead.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kTile = 4 * kThreads;
constexpr int kMaxBlocks = 65536 / kTile;

struct Control {
  std::uint32_t sums[2][kMaxRanks][kMaxBlocks];
  std::uint32_t flags[kMaxRanks][kMaxBlocks];
  std::uint32_t calls[kMaxBlocks];  // that this block has completed
};

// The sum over the whole block; every thread also gets the sum over the threads below it.
__device__ std::uint32_t BlockScan(std::uint32_t value, std::uint32_t* before) {
  __shared__ std::uint32_t of_warp[kWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  std::uint32_t scan = value;
  for (int d = 1; d < 32; d *= 2) {
    const std::uint32_t below = __shfl_up_sync(~0u, scan, d);
    if (lane >= d) scan += below;
  }
  __syncthreads();  // of an earlier use
  if (lane == 31) of_warp[warp] = scan;
  __syncthreads();
  std::uint32_t total = 0;
  *before = scan - value;
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) *before += of_warp[w];
    total += of_warp[w];
  }
  return total;
}

__global__ void __launch_bounds__(kThreads) Scan(Args args) {
  const int n = args.n, block = blockIdx.x, blocks = gridDim.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[block] + 1;
  const int turn = call % 2;
  const int i = block * kThreads + threadIdx.x;
  uint4 v;
  if (4 * i + 4 <= n) {
    v = reinterpret_cast<const uint4*>(args.in)[i];
  } else {
    const auto at = [&](int k) { return 4 * i + k < n ? args.in[4 * i + k] : 0; };
    v = {at(0), at(1), at(2), 0};
  }
  std::uint32_t before;
  const std::uint32_t sum = BlockScan(v.x + v.y + v.z + v.w, &before);
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    peer->sums[turn][args.rank][block] = sum;
    StoreReleaseSys(&peer->flags[args.rank][block], call);
  }
  std::uint32_t base = 0;
  for (int j = threadIdx.x; j < args.world * blocks; j += kThreads) {
    const int r = j / blocks, b = j % blocks;
    WaitAcquireSys(&mine->flags[r][b], call);
    if (r < args.rank || (r == args.rank && b < block)) base += mine->sums[turn][r][b];
  }
  std::uint32_t ignored;
  base = BlockScan(base, &ignored);

  const std::uint32_t running = base + before;
  const uint4 sums = {running, running + v.x, running + v.x + v.y, running + v.x + v.y + v.z};
  if (4 * i + 4 <= n) {
    reinterpret_cast<uint4*>(args.out)[i] = sums;
  } else {
    if (4 * i < n) args.out[4 * i] = sums.x;
    if (4 * i + 1 < n) args.out[4 * i + 1] = sums.y;
    if (4 * i + 2 < n) args.out[4 * i + 2] = sums.z;
  }
  if (threadIdx.x == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Scan<<<(args.n + kTile - 1) / kTile, kThreads, 0, stream>>>(args);
}
