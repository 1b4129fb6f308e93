#include <allranks/flags.h>

// A kernel stores the message in the next rank's memory, another one publishes it by a release and
// waits for that of the rank before, a third one copies it to `out` and gives the buffer back.
using namespace allranks;

constexpr int kBlocks = 8, kThreads = 256, kData = 256;

struct Control {
  std::uint32_t calls, full, empty;  // own; by the rank before; by the next rank
};

__device__ Control* At(const Args& args, int step) {
  return reinterpret_cast<Control*>(args.scratch_peers[(args.rank + step) % args.world]);
}

__global__ void Begin(Args args) { WaitAcquireSys(&At(args, 0)->empty, At(args, 0)->calls); }

__global__ void Store(Args args) {
  std::uint64_t* to =
      reinterpret_cast<std::uint64_t*>(args.scratch_peers[(args.rank + 1) % args.world] + kData);
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (int i = first; i < args.n; i += kBlocks * kThreads) to[i] = args.in[i];
}

__global__ void Publish(Args args) {
  const std::uint32_t call = At(args, 0)->calls + 1;
  StoreReleaseSys(&At(args, 1)->full, call);
  WaitAcquireSys(&At(args, 0)->full, call);
  At(args, 0)->calls = call;
}

__global__ void Take(Args args) {
  const std::uint64_t* from = reinterpret_cast<const std::uint64_t*>(args.scratch + kData);
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (int i = first; i < args.n; i += kBlocks * kThreads) args.out[i] = from[i];
}

__global__ void GiveBack(Args args) {
  StoreReleaseSys(&At(args, args.world - 1)->empty, At(args, 0)->calls);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Begin<<<1, 1, 0, stream>>>(args);
  Store<<<kBlocks, kThreads, 0, stream>>>(args);
  Publish<<<1, 1, 0, stream>>>(args);
  Take<<<kBlocks, kThreads, 0, stream>>>(args);
  GiveBack<<<1, 1, 0, stream>>>(args);
}
