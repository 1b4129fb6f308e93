// Kernel by kernel: all ranks meet, rank 0 writes the plan to everybody, all meet, slots are pushed
// word by word, all meet, and every rank copies what has come.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 128, kBlocks = 32, kData = 65536;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  std::int32_t plan[512];
};

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}

__global__ void Meet(Args args) {
  Control* mine = ControlOf(args, args.rank);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&ControlOf(args, threadIdx.x)->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void SendPlan(Args args) {
  for (int n = threadIdx.x; n < args.world * args.slots; n += kThreads) {
    for (int r = 0; r < args.world; ++r) ControlOf(args, r)->plan[n] = args.plan[n];
  }
}

__global__ void Push(Args args) {
  const Control* mine = ControlOf(args, args.rank);
  const std::int64_t words = args.quads * 4;
  for (int n = blockIdx.x; n < args.world * args.slots; n += kBlocks) {
    if (mine->plan[n] / args.slots != args.rank) continue;
    const std::uint32_t* from = args.w + mine->plan[n] % args.slots * words;
    std::uint8_t* staging = args.scratch_peers[n / args.slots] + kData;
    std::uint32_t* to = reinterpret_cast<std::uint32_t*>(staging) + n % args.slots * words;
    for (std::int64_t i = threadIdx.x; i < words; i += kThreads) to[i] = from[i];
  }
}

__global__ void Keep(Args args) {
  const std::uint32_t* staging = reinterpret_cast<const std::uint32_t*>(args.scratch + kData);
  const std::int64_t count = args.slots * args.quads * 4;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    args.out[i] = staging[i];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  if (args.rank == 0) SendPlan<<<1, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Push<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Keep<<<kBlocks, kThreads, 0, stream>>>(args);
}
