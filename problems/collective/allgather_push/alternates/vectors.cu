// Ordinary stores of 16 bytes by many threads; one counter per block, to which every rank adds one
// when it has entered and one when its data have come. A rank cannot be a call ahead of another, so
// 2 * world * calls + world says that all have entered, and twice world that all is here.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t counts[kMaxBlocks];
};

__device__ void Meet(const Args& args, std::uint32_t complete) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    AddReleaseSys(&peer->counts[blockIdx.x], 1u);
    WaitAcquireSys(&reinterpret_cast<Control*>(args.scratch)->counts[blockIdx.x], complete);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) AllGather(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t calls = mine->calls[blockIdx.x];
  const std::int64_t vectors = args.n / 4;
  Meet(args, (2 * calls + 1) * args.world);
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < vectors; i += gridDim.x * kThreads) {
    const uint4 v = reinterpret_cast<const uint4*>(args.in)[i];
    for (int step = 0; step < args.world; ++step) {
      std::uint32_t* out = args.out_peers[(args.rank + step) % args.world];
      reinterpret_cast<uint4*>(out)[args.rank * vectors + i] = v;
    }
  }
  Meet(args, (2 * calls + 2) * args.world);
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = calls + 1;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 4 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllGather<<<blocks, kThreads, 0, stream>>>(args);
}
