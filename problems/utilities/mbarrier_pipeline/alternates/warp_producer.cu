#include <allranks/flags.h>

// As a pipeline whose producer is a whole warp: it loads a tile with ordinary loads, stores it into
// shared memory and arrives on `full`; consumers arrive on `empty`. Two stages, tiles of four rows.

constexpr int kTileRows = 4, kStages = 2, kMaxBlocks = 16, kThreads = 32 + 32 * kTileRows;
constexpr int kCols = 256, kRowBytes = 4 * kCols;

struct Board {
  std::uint32_t calls[kMaxBlocks];    // own: that this block has completed
  std::uint32_t entered[kMaxBlocks];  // by the next rank: the last call that its block is in
  std::uint32_t done[kMaxBlocks];     // by the rank before: the last call whose rows it has read
};

__device__ std::uint32_t Shared(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

__device__ void Init(std::uint64_t* barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(Shared(barrier)), "r"(count)
               : "memory");
}

__device__ void Arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(Shared(barrier)) : "memory");
}

__device__ void WaitPhase(std::uint64_t* barrier, int phase) {
  std::uint32_t done;
  do {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(Shared(barrier)), "r"(phase)
        : "memory");
  } while (done == 0);
}

__global__ void __launch_bounds__(kThreads) Multiply(Args args) {
  __shared__ alignas(128) std::uint32_t stages[kStages][kTileRows][kCols];
  __shared__ std::uint64_t full[kStages], empty[kStages];
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const int next = (args.rank + 1) % args.world;
  const int before = (args.rank + args.world - 1) % args.world;
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int each = (static_cast<int>(args.rows) + gridDim.x - 1) / gridDim.x;
  const int first = blockIdx.x * each, last = min(first + each, static_cast<int>(args.rows));
  const int tiles = first < last ? (last - first + kTileRows - 1) / kTileRows : 0;
  const auto rows_of = [&](int t) { return min(last - first - t * kTileRows, kTileRows); };
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    Board* reader = reinterpret_cast<Board*>(args.scratch_peers[before]);
    allranks::StoreReleaseSys(&reader->entered[blockIdx.x], call);
    for (int s = 0; s < kStages; ++s) {
      Init(&full[s], 32);
      Init(&empty[s], kTileRows);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  if (warp == 0) {
    allranks::WaitAcquireSys(&mine->entered[blockIdx.x], call);
    const uint4* rows = reinterpret_cast<const uint4*>(args.x_peers[next] + first * kCols);
    constexpr int kVectors = kTileRows * kCols / 4, kPerLane = kVectors / 32;
    for (int t = 0; t < tiles; ++t) {
      const int stage = t % kStages, count = rows_of(t) * kCols / 4;
      uint4 v[kPerLane];
#pragma unroll
      for (int k = 0; k < kPerLane; ++k) {
        if (lane + 32 * k < count) v[k] = rows[t * kVectors + lane + 32 * k];
      }
      WaitPhase(&empty[stage], (t / kStages + 1) % 2);
      uint4* to = reinterpret_cast<uint4*>(stages[stage]);
#pragma unroll
      for (int k = 0; k < kPerLane; ++k) {
        if (lane + 32 * k < count) to[lane + 32 * k] = v[k];
      }
      Arrive(&full[stage]);
    }
  } else {
    const uint4* w = reinterpret_cast<const uint4*>(args.w);
    const uint4 weights[2] = {w[lane], w[lane + 32]};
    for (int t = 0; t < tiles; ++t) {
      const int stage = t % kStages, row = warp - 1;
      WaitPhase(&full[stage], t / kStages % 2);
      std::uint32_t sum = 0;
      for (int half = 0; half < 2 && row < rows_of(t); ++half) {
        const uint4 v = reinterpret_cast<const uint4*>(stages[stage][row])[lane + 32 * half];
        const uint4 a = weights[half];
        sum += v.x * a.x + v.y * a.y + v.z * a.z + v.w * a.w;
      }
      __syncwarp();
      if (lane == 0) Arrive(&empty[stage]);
      sum = __reduce_add_sync(~0u, sum);
      if (lane == 0 && row < rows_of(t)) args.out[first + t * kTileRows + row] = sum;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    Board* owner = reinterpret_cast<Board*>(args.scratch_peers[next]);
    allranks::StoreReleaseSys(&owner->done[blockIdx.x], call);
    allranks::WaitAcquireSys(&mine->done[blockIdx.x], call);
    mine->calls[blockIdx.x] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.rows + kTileRows - 1) / kTileRows;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  Multiply<<<blocks, kThreads, 0, stream>>>(args);
}
