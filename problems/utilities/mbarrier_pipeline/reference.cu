#include <allranks/flags.h>

// Blocks have consecutive rows each. One thread of a block fetches tiles of four rows from the peer
// by bulk copies, up to four tiles ahead; four warps take one row of each tile. A stage of shared
// memory has two mbarriers: `full` completes when the bytes of a tile have come, `empty` when all
// four warps have taken their rows. A barrier's phase is that of its stage's turn.
//
// The next rank's rows are open once it has told of its entry. It leaves when the same block here
// has told that all rows were read; so does this rank towards the rank before it.

constexpr int kTileRows = 4, kStages = 4, kMaxBlocks = 16, kThreads = 32 + 32 * kTileRows;
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

__device__ void Expect(std::uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Shared(barrier)),
               "r"(bytes)
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

__device__ void Fetch(void* to, const void* from, int bytes, std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(Shared(to)),
      "l"(from), "r"(bytes), "r"(Shared(barrier))
      : "memory");
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
    allranks::StoreReleaseSys(&reader->entered[blockIdx.x], call);  //@entered
    for (int s = 0; s < kStages; ++s) {
      Init(&full[s], 1);
      Init(&empty[s], kTileRows);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();  //@ready

  if (threadIdx.x == 0) {
    allranks::WaitAcquireSys(&mine->entered[blockIdx.x], call);  //@gate
    for (int t = 0; t < tiles; ++t) {
      const int stage = t % kStages;
      WaitPhase(&empty[stage], (t / kStages + 1) % 2);  // the first turn is free  //@free
      Expect(&full[stage], rows_of(t) * kRowBytes);
      Fetch(stages[stage], args.x_peers[next] + (first + t * kTileRows) * kCols,
            rows_of(t) * kRowBytes, &full[stage]);
    }
  } else if (warp > 0) {
    const uint4* w = reinterpret_cast<const uint4*>(args.w);
    const uint4 weights[2] = {w[lane], w[lane + 32]};
    for (int t = 0; t < tiles; ++t) {
      const int stage = t % kStages, row = warp - 1;
      WaitPhase(&full[stage], t / kStages % 2);  //@arrived
      std::uint32_t sum = 0;
      for (int half = 0; half < 2 && row < rows_of(t); ++half) {
        const uint4 v = reinterpret_cast<const uint4*>(stages[stage][row])[lane + 32 * half];
        const uint4 a = weights[half];
        sum += v.x * a.x + v.y * a.y + v.z * a.z + v.w * a.w;
      }
      __syncwarp();                          //@taken
      if (lane == 0) Arrive(&empty[stage]);  //@release
      sum = __reduce_add_sync(~0u, sum);
      if (lane == 0 && row < rows_of(t)) args.out[first + t * kTileRows + row] = sum;
    }
  }
  __syncthreads();  //@all_read
  if (threadIdx.x == 0) {
    Board* owner = reinterpret_cast<Board*>(args.scratch_peers[next]);
    allranks::StoreReleaseSys(&owner->done[blockIdx.x], call);  //@leave
    allranks::WaitAcquireSys(&mine->done[blockIdx.x], call);    //@stay
    mine->calls[blockIdx.x] = call;                             //@advance
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.rows + kTileRows - 1) / kTileRows;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  Multiply<<<blocks, kThreads, 0, stream>>>(args);
}
