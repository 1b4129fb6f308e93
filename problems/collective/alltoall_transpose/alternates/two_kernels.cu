// Two kernels: one sends vectors into the peers' symmetric memory and tells them, the other waits
// and collects. Two sets of slots take turns, so that a peer may be one call ahead.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 128, kMaxBlocks = 64;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by peer: the last call whose part is here
};

__device__ uint4* Slots(const Args& args, int rank, std::uint32_t call) {
  const std::int64_t set = args.world * args.tokens * args.cols / 8;
  return reinterpret_cast<uint4*>(args.scratch_peers[rank] + sizeof(Control)) + call % 2 * set;
}

__global__ void __launch_bounds__(kThreads) Send(Args args) {
  const Control* mine = reinterpret_cast<const Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int width = static_cast<int>(args.cols / 8), part = static_cast<int>(args.tokens) * width;
  const uint4* in = reinterpret_cast<const uint4*>(args.in);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < part; i += gridDim.x * kThreads) {
#pragma unroll 8
    for (int step = 0; step < args.world; ++step) {
      const int peer = (args.rank + step) % args.world;
      Slots(args, peer, call)[args.rank * part + i] =
          in[(i / width * args.world + peer) * width + i % width];
    }
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->arrived[blockIdx.x][args.rank], call);
  }
}

__global__ void __launch_bounds__(kThreads) Collect(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int part = static_cast<int>(args.tokens * args.cols / 8);
  if (threadIdx.x < args.world) WaitAcquireSys(&mine->arrived[blockIdx.x][threadIdx.x], call);
  __syncthreads();
  const uint4* slots = Slots(args, args.rank, call);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < part; i += gridDim.x * kThreads) {
#pragma unroll 8
    for (int source = 0; source < args.world; ++source) {
      reinterpret_cast<uint4*>(args.out)[source * part + i] = slots[source * part + i];
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.tokens * args.cols / 8 + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  Send<<<blocks, kThreads, 0, stream>>>(args);
  Collect<<<blocks, kThreads, 0, stream>>>(args);
}
