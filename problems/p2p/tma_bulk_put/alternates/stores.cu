// Without shared memory: threads store vectors into the next rank's `out` themselves, four on their
// way at a time.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256, kAhead = 4;

struct Control {
  std::uint32_t calls[kMaxBlocks], entered[kMaxBlocks], done[kMaxBlocks];
};

__global__ void __launch_bounds__(kThreads) Put(Args args) {
  const int block = blockIdx.x, next = (args.rank + 1) % args.world, n = args.n;
  const int before = (args.rank + args.world - 1) % args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* receiver = reinterpret_cast<Control*>(args.scratch_peers[next]);
  Control* sender = reinterpret_cast<Control*>(args.scratch_peers[before]);
  const uint4* in = reinterpret_cast<const uint4*>(args.in);
  uint4* out = reinterpret_cast<uint4*>(args.out_peers[next]);
  const std::uint32_t call = mine->calls[block] + 1;
  if (threadIdx.x == 0) {
    StoreReleaseSys(&sender->entered[block], call);
    WaitAcquireSys(&mine->entered[block], call);
  }
  __syncthreads();
  const int stride = gridDim.x * kThreads, thread = block * kThreads + threadIdx.x;
  for (int first = thread; first < n / 4; first += kAhead * stride) {
    uint4 x[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int v = first + k * stride;
      if (v < n / 4) x[k] = in[v];
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int v = first + k * stride;
      if (v % 128 == 0 && v < n / 4) x[k].x += args.stamps[v / 128];
      if (v < n / 4) out[v] = x[k];
    }
  }
  const int left = n / 4 * 4 + thread;
  if (left < n)
    args.out_peers[next][left] = args.in[left] + (left % 512 == 0 ? args.stamps[left / 512] : 0);
  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(&receiver->done[block], call);
    WaitAcquireSys(&mine->done[block], call);
    mine->calls[block] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + 4 * kThreads - 1) / (4 * kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Put<<<blocks, kThreads, 0, stream>>>(args);
}
