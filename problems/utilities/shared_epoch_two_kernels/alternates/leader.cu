#include <allranks/flags.h>

// Data moves in kernels of any grid; all meetings are made by one warp in a kernel between them, so
// that there is one epoch, which only this warp counts. Slots exist once for each step: the meeting
// of the one step is after the reading of the other.

struct Board {
  std::uint32_t epoch;               // own: meetings so far
  std::uint32_t arrived[kMaxRanks];  // by rank: its last meeting
};
constexpr int kBlocks = 16, kThreads = 256;

__device__ uint4* Slot(const Args& args, int at, int r, int step) {
  uint4* slots = reinterpret_cast<uint4*>(args.scratch_peers[at] + 16384);
  return step == 0 ? slots + r * (args.n / 4) : slots + args.world * args.n / 4 + r * (args.m / 4);
}

__global__ void Send(Args args, int step) {
  const std::int64_t vectors = (step == 0 ? args.n : args.m) / 4;
  const uint4* in = reinterpret_cast<const uint4*>(step == 0 ? args.a : args.b);
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < vectors; i += kBlocks * kThreads) {
    const uint4 v = in[i];
    for (int r = 0; r < args.world; ++r) Slot(args, r, args.rank, step)[i] = v;
  }
}

__global__ void Meet(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t epoch = mine->epoch + 1;
  if (threadIdx.x < args.world) {
    Board* peer = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->arrived[args.rank], epoch);
    allranks::WaitAcquireSys(&mine->arrived[threadIdx.x], epoch);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->epoch = epoch;
}

__global__ void Take(Args args, int step) {
  const std::int64_t vectors = (step == 0 ? args.n : args.m) / 4;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < vectors; i += kBlocks * kThreads) {
    uint4 total = {0, 0, 0, 0};
    for (int r = 0; r < args.world; ++r) {
      const uint4 v = Slot(args, args.rank, r, step)[i];
      total = {total.x + v.x, total.y + v.y, total.z + v.z, total.w + v.w};
      if (step == 0) reinterpret_cast<uint4*>(args.all)[r * vectors + i] = v;
    }
    if (step == 1) reinterpret_cast<uint4*>(args.sum)[i] = total;
  }
}

static void Step(const Args& args, cudaStream_t stream, int step) {
  Send<<<kBlocks, kThreads, 0, stream>>>(args, step);
  Meet<<<1, 32, 0, stream>>>(args);
  Take<<<kBlocks, kThreads, 0, stream>>>(args, step);
}

extern "C" void gather(const Args& args, cudaStream_t stream) { Step(args, stream, 0); }

extern "C" void reduce(const Args& args, cudaStream_t stream) { Step(args, stream, 1); }
