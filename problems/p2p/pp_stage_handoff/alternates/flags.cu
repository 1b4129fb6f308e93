// With flags beside the data: a block writes its part of a micro-batch into one of four slots at
// the next stage and publishes the step; the block there returns credit when it has read the slot.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 128, kSlots = 4;

struct Control {
  std::uint32_t steps[kMaxBlocks];     // of all earlier calls
  std::uint32_t arrived[kMaxBlocks];   // from the stage before
  std::uint32_t consumed[kMaxBlocks];  // from the stage behind
};

__global__ void __launch_bounds__(kThreads) Stage(Args args) {
  const int rank = args.rank, block = blockIdx.x;
  const bool first = rank == 0, last = rank + 1 == args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* before = reinterpret_cast<Control*>(args.scratch_peers[first ? rank : rank - 1]);
  Control* behind = reinterpret_cast<Control*>(args.scratch_peers[last ? rank : rank + 1]);
  const std::uint32_t* inbox = reinterpret_cast<const std::uint32_t*>(mine + 1);
  std::uint32_t* outbox = reinterpret_cast<std::uint32_t*>(behind + 1);
  const std::int64_t n = args.n, micro = args.micro;
  const std::int64_t warm = min(micro, std::int64_t{args.world - 1 - rank});
  const int start = block * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  std::uint32_t step = mine->steps[block];

  for (std::int64_t m = 0; m < micro; ++m, ++step) {
    if (threadIdx.x == 0 && !first) WaitAcquireSys(&mine->arrived[block], step + 1);
    if (threadIdx.x == 32 && !last) WaitAcquireSys(&mine->consumed[block], step + 1 - kSlots);
    __syncthreads();
    for (std::int64_t i = start; i < n; i += stride) {
      const std::int64_t place = step % kSlots * n + i;
      const std::uint32_t x = first ? args.in[m * n + i] : inbox[place];
      const std::uint32_t w = m == 0 ? args.weights[i] : args.new_weights[i];
      const std::uint32_t t = (x + w) * 0x9E3779B1u, y = t ^ t >> 15;
      if (!last) outbox[place] = y;
      args.out[m * n + i] = y;
      args.new_weights[i] = m < warm ? w : w + args.out[(m - warm) * n + i];
    }
    __syncthreads();
    if (threadIdx.x == 0 && !last) StoreReleaseSys(&behind->arrived[block], step + 1);
    if (threadIdx.x == 32 && !first) StoreReleaseSys(&before->consumed[block], step + 1);
  }
  for (std::int64_t i = start; i < n; i += stride) {
    for (std::int64_t m = micro - warm; m < micro; ++m) args.new_weights[i] += args.out[m * n + i];
  }
  if (threadIdx.x == 0) mine->steps[block] = step;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Stage<<<blocks, kThreads, 0, stream>>>(args);
}
