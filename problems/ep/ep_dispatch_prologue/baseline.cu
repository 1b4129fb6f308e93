// Three kernels: choices are counted into memory that peers can read, all ranks meet, and one
// thread per expert walks through all choices. Another meeting lets the counts be overwritten.
#include <allranks/flags.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kData = 256, kThreads = 512;

__global__ void Count(Args args) {
  __shared__ int counts[kThreads];
  counts[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < args.tokens * args.topk; i += kThreads) {
    atomicAdd(&counts[args.ids[i]], 1);
  }
  __syncthreads();
  reinterpret_cast<std::int32_t*>(args.scratch + kData)[threadIdx.x] = counts[threadIdx.x];
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Assign(Args args) {
  const int expert = threadIdx.x;
  if (expert >= args.world * args.per) return;
  int slot = 0, total = 0;
  for (int s = 0; s < args.world; ++s) {
    total += reinterpret_cast<const std::int32_t*>(args.scratch_peers[s] + kData)[expert];
    if (s + 1 == args.rank) slot = total;
  }
  if (expert / args.per == args.rank) args.received[expert % args.per] = total;
  for (int i = 0; i < args.tokens * args.topk; ++i) {
    if (args.ids[i] == expert) args.slots[i] = slot++;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Count<<<1, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Assign<<<1, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
