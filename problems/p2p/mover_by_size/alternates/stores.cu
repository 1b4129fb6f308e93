#include <allranks/flags.h>

// By kernels alone: small messages through scratch, others by stores of 16 bytes to the next rank's
// `out`. Either way a release publishes them, block by block.
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 512, kSmall = 4096, kData = 2048;

struct Control {
  std::uint32_t calls[kMaxBlocks];    // own
  std::uint32_t entered[kMaxBlocks];  // by the receiver: in this call, done with the one before
  std::uint32_t full[kMaxBlocks];     // by the sender
};

__global__ void __launch_bounds__(kThreads) Put(Args args, bool small) {
  const int next = (args.rank + 1) % args.world, before = (args.rank + args.world - 1) % args.world;
  const int block = blockIdx.x, n = args.n;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* target = reinterpret_cast<Control*>(args.scratch_peers[next]);
  Control* source = reinterpret_cast<Control*>(args.scratch_peers[before]);
  const std::uint32_t call = mine->calls[block] + 1;
  if (threadIdx.x == 0) {
    StoreReleaseSys(&source->entered[block], call);
    WaitAcquireSys(&mine->entered[block], call);
  }
  __syncthreads();
  std::uint32_t* to = small ? reinterpret_cast<std::uint32_t*>(args.scratch_peers[next] + kData)
                            : args.out_peers[next];
  const int first = 4 * (block * kThreads + threadIdx.x), stride = 4 * gridDim.x * kThreads;
  for (int i = first; i < n; i += stride) {
    if (i + 4 <= n) {
      *reinterpret_cast<uint4*>(to + i) = *reinterpret_cast<const uint4*>(args.in + i);
    } else {
      for (int j = i; j < n; ++j) to[j] = args.in[j];
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(&target->full[block], call);
    WaitAcquireSys(&mine->full[block], call);
    mine->calls[block] = call;
  }
  __syncthreads();
  if (!small) return;
  const std::uint32_t* from = reinterpret_cast<const std::uint32_t*>(args.scratch + kData);
  for (int i = first; i < n; i += stride) {
    for (int j = i; j < n && j < i + 4; ++j) args.out[j] = from[j];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + 4 * kThreads - 1) / (4 * kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Put<<<blocks, kThreads, 0, stream>>>(args, args.n <= kSmall);
}
