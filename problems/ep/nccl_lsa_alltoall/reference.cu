#include <nccl_device.h>

// Push: every block of threads stores its part of each expert block into the window of the rank
// that it is for, meets the same block of all ranks once, and copies what has arrived for it to the
// outputs. The last block of threads has the names of the experts. The window has two buffers in
// turn: a peer that is in call k + 1 has met this rank in call k, which may still be copying there,
// while one in call k + 2 has met it in call k + 1, behind all reads of call k.
using Coop = ncclCoopCta;
using Barrier = ncclLsaBarrierSession<Coop>;
constexpr int kMaxBlocks = 33, kThreads = 256, kMaxCases = 64;

struct Case {
  const void* key;  // the case's first input
  ncclWindow_t window;
};
static Case cases[kMaxCases];
static ncclDevComm device;

// A window: counters of calls, one per block of threads, and two buffers of `world` blocks. Each is
// tokens and, behind them, names of experts.
constexpr std::size_t kHeader = 256;
static_assert(kHeader >= kMaxBlocks * sizeof(std::uint32_t));

__host__ __device__ std::size_t TokenBytes(const Args& args) {
  return 4 * args.slots * args.hidden;
}
__host__ __device__ std::size_t BlockBytes(const Args& args) {
  return TokenBytes(args) + (args.slots + 3) / 4 * 16;
}

struct Threads {
  int first, stride;
};

// `count` elements for each rank; `at` is where those of rank 0 stand in a window.
template <class T>
__device__ void Exchange(const Args& args, Barrier& barrier, ncclWindow_t window, std::size_t at,
                         const T* in, T* out, std::int64_t count, Threads threads) {
  const std::size_t block = BlockBytes(args);
  T v[kMaxRanks];  // all loads are under way before the first of them is needed
  for (std::int64_t i = threads.first; i < count; i += threads.stride) {
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < args.world) v[r] = in[r * count + i];
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < args.world && r != args.rank) {
        static_cast<T*>(ncclGetLsaPointer(window, at + args.rank * block, r))[i] = v[r];  //@put
      }
      if (r == args.rank) out[r * count + i] = v[r];  //@own
    }
  }
  barrier.sync(Coop(), cuda::memory_order_acq_rel);  //@meet
  for (std::int64_t i = threads.first; i < count; i += threads.stride) {
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < args.world && r != args.rank)
        v[r] = static_cast<T*>(ncclGetLocalPointer(window, at + r * block))[i];
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < args.world && r != args.rank) out[r * count + i] = v[r];
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    AllToAll(Args args, ncclDevComm comm, ncclWindow_t window) {
  Barrier barrier(Coop(), comm, ncclTeamTagLsa(), blockIdx.x);
  std::uint32_t* calls = static_cast<std::uint32_t*>(ncclGetLocalPointer(window, 0)) + blockIdx.x;
  const std::uint32_t call = *calls + 1;  //@epoch
  const std::size_t buffer = kHeader + call % 2 * args.world * BlockBytes(args);
  const int token_blocks = gridDim.x - 1;
  if (blockIdx.x < token_blocks) {
    const Threads threads = {
        static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x),
        token_blocks * kThreads};
    Exchange(args, barrier, window, buffer, reinterpret_cast<const uint4*>(args.tokens),
             reinterpret_cast<uint4*>(args.out), args.slots * args.hidden / 4, threads);
  } else {
    const Threads threads = {static_cast<int>(threadIdx.x), kThreads};
    Exchange(args, barrier, window, buffer + TokenBytes(args), args.expert, args.out_expert,
             args.slots, threads);
  }
  if (threadIdx.x == 0) *calls = call;  //@advance
}

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  ncclComm_t world = allranks::NcclWorld(boot);
  if (device.nRanks == 0) {
    ncclDevCommRequirements requirements = {};
    requirements.lsaBarrierCount = kMaxBlocks;
    allranks::NcclCheck(ncclDevCommCreate(world, &requirements, &device), "ncclDevCommCreate");
  }
  Case* mine = cases;
  while (mine->key != nullptr) ++mine;
  mine->key = args.tokens;
  const std::size_t bytes = kHeader + 2 * args.world * BlockBytes(args);
  void* memory = nullptr;
  allranks::NcclCheck(ncclMemAlloc(&memory, bytes), "ncclMemAlloc");
  allranks::NcclCheck(
      ncclCommWindowRegister(world, memory, bytes, &mine->window, NCCL_WIN_COLL_SYMMETRIC),
      "ncclCommWindowRegister");
  cudaMemset(memory, 0, kHeader);
  cudaDeviceSynchronize();
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Case* mine = cases;
  while (mine->key != args.tokens) ++mine;
  const std::int64_t needed = (args.slots * args.hidden / 4 + kThreads - 1) / kThreads + 1;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllToAll<<<blocks, kThreads, 0, stream>>>(args, device, mine->window);
}
