// With flags beside the data, in one kernel: a block writes its part of a micro-batch into one of
// five slots at the next rank and publishes its number; the block there returns credit when it has
// read the slot. Groups are as many micro-batches as ranks, so some slot is always free.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 16, kThreads = 128, kSlots = 5;

struct Control {
  std::uint32_t sent[kMaxBlocks], received[kMaxBlocks];  // of all earlier calls
  std::uint32_t arrived[kMaxBlocks];                     // from the rank before
  std::uint32_t consumed[kMaxBlocks];                    // from the next rank
};

__global__ void __launch_bounds__(kThreads) Stages(Args args) {
  const int block = blockIdx.x, rank = args.rank, world = args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* before = reinterpret_cast<Control*>(args.scratch_peers[(rank + world - 1) % world]);
  Control* next = reinterpret_cast<Control*>(args.scratch_peers[(rank + 1) % world]);
  const std::uint32_t* inbox = reinterpret_cast<const std::uint32_t*>(mine + 1);
  std::uint32_t* outbox = reinterpret_cast<std::uint32_t*>(next + 1);
  const std::int64_t n = args.n;
  std::uint32_t sent = mine->sent[block], received = mine->received[block];

  const auto step = [&](std::int64_t round, std::int64_t m) {
    const bool comes = rank > 0 || round > 0, goes = rank + 1 < world || round + 1 < args.rounds;
    if (threadIdx.x == 0 && comes) WaitAcquireSys(&mine->arrived[block], received + 1);
    if (threadIdx.x == 32 && goes) WaitAcquireSys(&mine->consumed[block], sent + 1 - kSlots);
    __syncthreads();
    const std::uint32_t* from = comes ? inbox + received % kSlots * n : args.in + m * n;
    for (int i = block * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) {
      const std::uint32_t t = (from[i] + args.weights[round * n + i]) * 0x9E3779B1u;
      const std::uint32_t y = t ^ args.table[t >> 17];
      args.acts[(round * args.micro + m) * n + i] = y;
      if (goes) outbox[sent % kSlots * n + i] = y;
    }
    __syncthreads();
    received += comes, sent += goes;
    if (threadIdx.x == 0 && goes) StoreReleaseSys(&next->arrived[block], sent);
    if (threadIdx.x == 32 && comes) StoreReleaseSys(&before->consumed[block], received);
  };
  for (std::int64_t first = 0; first < args.micro; first += world) {
    for (std::int64_t round = 0; round < args.rounds; ++round) {
      for (std::int64_t m = first; m < args.micro && m < first + world; ++m) step(round, m);
    }
  }
  if (threadIdx.x == 0) mine->sent[block] = sent, mine->received[block] = received;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Stages<<<blocks, kThreads, 0, stream>>>(args);
}
