// Straight into place: the receiver announces that it has entered the call, the sender writes the
// entries where they belong in the receiver's `out`, and publishes header and end by a flag.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t open[kMaxBlocks];  // from the next stage: calls that it has entered
  std::uint32_t done[kMaxBlocks];  // from the stage before: calls whose entries are here
  std::int32_t sizes[2][32];       // by parity of the call
};

__global__ void __launch_bounds__(kThreads) Transfer(Args args) {
  const int block = blockIdx.x, next = (args.rank + 1) % args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[next]);
  Control* before =
      reinterpret_cast<Control*>(args.scratch_peers[(args.rank + args.world - 1) % args.world]);
  const std::uint32_t call = mine->calls[block] + 1;
  if (threadIdx.x == 0) {
    StoreReleaseSys(&before->open[block], call);
    WaitAcquireSys(&mine->open[block], call);
  }
  __syncthreads();
  if (block == 0 && threadIdx.x < args.tensors) {
    theirs->sizes[call % 2][threadIdx.x] = args.sizes[threadIdx.x];
  }
  std::int64_t from = 0, to = 0;
  for (int t = 0; t < args.tensors; ++t) {
    const std::int64_t size = args.sizes[t];
    for (std::int64_t i = block * kThreads + threadIdx.x; i < size; i += gridDim.x * kThreads) {
      args.out_peers[next][to + i] = args.in[from + i];
    }
    from += size;
    to += (size + 3) / 4 * 4;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(&theirs->done[block], call);
    WaitAcquireSys(&mine->done[block], call);
    mine->calls[block] = call;
  }
  __syncthreads();
  if (block == 0 && threadIdx.x < args.tensors) {
    args.got_sizes[threadIdx.x] = mine->sizes[call % 2][threadIdx.x];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.room + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Transfer<<<blocks, kThreads, 0, stream>>>(args);
}
