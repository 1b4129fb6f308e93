// By pulling: a stage leaves its activations in its own memory and publishes the step there; the
// next stage polls that word across the link, reads the words, and reports what it has read.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 128, kSlots = 3;

struct Control {
  std::uint32_t made[kMaxBlocks];   // steps of all calls
  std::uint32_t taken[kMaxBlocks];  // of these, by the next stage, which writes it
};

__global__ void __launch_bounds__(kThreads) Stage(Args args) {
  const int rank = args.rank, block = blockIdx.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* before = reinterpret_cast<Control*>(args.scratch_peers[rank > 0 ? rank - 1 : 0]);
  const std::uint32_t* theirs = reinterpret_cast<const std::uint32_t*>(before + 1);
  std::uint32_t* kept = reinterpret_cast<std::uint32_t*>(mine + 1);
  const std::int64_t n = args.n, micro = args.micro;
  const std::int64_t warm = min(micro, std::int64_t{args.world - 1 - rank});
  const int start = block * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const bool last = rank + 1 == args.world;
  std::uint32_t step = LoadRelaxedSys(&mine->made[block]);

  for (std::int64_t i = start; i < n; i += stride) args.new_weights[i] = args.weights[i];
  for (std::int64_t m = 0; m < micro; ++m, ++step) {
    if (threadIdx.x == 0) {
      if (rank > 0) WaitAcquireSys(&before->made[block], step + 1);
      if (!last) WaitAcquireSys(&mine->taken[block], step + 1 - kSlots);
    }
    __syncthreads();
    for (std::int64_t i = start; i < n; i += stride) {
      const std::int64_t place = step % kSlots * n + i;
      const std::uint32_t x = rank == 0 ? args.in[m * n + i] : theirs[place];
      const std::uint32_t t = (x + args.new_weights[i]) * 0x9E3779B1u, y = t ^ t >> 15;
      kept[place] = args.out[m * n + i] = y;
      if (m >= warm) args.new_weights[i] += args.out[(m - warm) * n + i];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      StoreReleaseSys(&mine->made[block], step + 1);
      if (rank > 0) StoreReleaseSys(&before->taken[block], step + 1);
    }
  }
  for (std::int64_t i = start; i < n; i += stride) {
    for (std::int64_t m = micro - warm; m < micro; ++m) args.new_weights[i] += args.out[m * n + i];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Stage<<<blocks, kThreads, 0, stream>>>(args);
}
