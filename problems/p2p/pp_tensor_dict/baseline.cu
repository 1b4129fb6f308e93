// Kernel by kernel, with one slot at the receiver: wait until it is free, push header and words,
// tell the receiver and wait for the sender, unpack word by word, and give the slot back.
#include <allranks/flags.h>
using namespace allranks;

struct Control {
  std::uint32_t calls;
  std::uint32_t arrived, freed;  // from the stage before, from the stage behind
  std::int32_t sizes[32];
};
constexpr int kBlocks = 32, kThreads = 256;

__device__ Control* ControlOf(const Args& args, int step) {
  return reinterpret_cast<Control*>(args.scratch_peers[(args.rank + step) % args.world]);
}

__global__ void AwaitRoom(Args args) {
  Control* mine = ControlOf(args, 0);
  WaitAcquireSys(&mine->freed, mine->calls);
}

__global__ void Push(Args args) {
  Control* theirs = ControlOf(args, 1);
  std::uint32_t* slot = reinterpret_cast<std::uint32_t*>(theirs + 1);
  std::int64_t total = 0;
  for (int t = 0; t < args.tensors; ++t) total += args.sizes[t];
  const int first = blockIdx.x * kThreads + threadIdx.x;
  if (first < args.tensors) theirs->sizes[first] = args.sizes[first];
  for (std::int64_t i = first; i < total; i += kBlocks * kThreads) slot[i] = args.in[i];
}

__global__ void Meet(Args args) {
  Control* mine = ControlOf(args, 0);
  StoreReleaseSys(&ControlOf(args, 1)->arrived, mine->calls + 1);
  WaitAcquireSys(&mine->arrived, mine->calls + 1);
}

__global__ void Unpack(Args args) {
  const Control* mine = ControlOf(args, 0);
  const std::uint32_t* slot = reinterpret_cast<const std::uint32_t*>(mine + 1);
  const int first = blockIdx.x * kThreads + threadIdx.x;
  if (first < args.tensors) args.got_sizes[first] = mine->sizes[first];
  std::int64_t from = 0, to = 0;
  for (int t = 0; t < args.tensors; ++t) {
    const std::int64_t size = mine->sizes[t];
    for (std::int64_t i = first; i < size; i += kBlocks * kThreads) {
      args.out[to + i] = slot[from + i];
    }
    from += size;
    to += (size + 3) / 4 * 4;
  }
}

__global__ void GiveBack(Args args) {
  const std::uint32_t call = ++ControlOf(args, 0)->calls;
  StoreReleaseSys(&ControlOf(args, args.world - 1)->freed, call);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  AwaitRoom<<<1, 1, 0, stream>>>(args);
  Push<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 1, 0, stream>>>(args);
  Unpack<<<kBlocks, kThreads, 0, stream>>>(args);
  GiveBack<<<1, 1, 0, stream>>>(args);
}
