// By pulling: every rank stages its input and releases its vote to all peers, beside the number of
// the call. The root acquires all votes and reads the staged inputs. Two stages in turn: a rank
// stages into the first again in call k + 2, after it has acquired the votes of call k + 1, which
// were cast after the root had read the stages of call k.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 16, kThreads = 256;

struct Control {
  std::uint64_t votes[2][kMaxBlocks][kMaxRanks];
  std::uint32_t calls[kMaxBlocks];
};

__global__ void __launch_bounds__(kThreads) Reduce(Args args) {
  __shared__ int ballot[kMaxRanks];
  const int block = blockIdx.x, thread = threadIdx.x, world = args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[block] + 1;
  const std::int64_t pairs = args.n / 2, first = block * kThreads + thread;
  const std::int64_t stride = gridDim.x * kThreads, stage = 8192 + call % 2 * args.n * 4;
  float2* staged = reinterpret_cast<float2*>(args.scratch + stage);
  for (std::int64_t i = first; i < pairs; i += stride) {
    staged[i] = reinterpret_cast<const float2*>(args.in)[i];
  }
  __syncthreads();
  if (thread < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread]);
    StoreReleaseSys(&peer->votes[call % 2][block][args.rank],
                    std::uint64_t{call} << 32 | *args.vote);
    std::uint64_t vote;
    do {
      vote = LoadAcquireSys(&mine->votes[call % 2][block][thread]);
    } while (vote >> 32 != call);
    ballot[thread] = static_cast<int>(vote);
  }
  __syncthreads();
  int votes = 0;
  for (int r = 0; r < world; ++r) votes += ballot[r];
  for (std::int64_t i = first; args.rank == votes % world && i < pairs; i += stride) {
    float2 sum = {0, 0};
    for (int r = 0; r < world; ++r) {
      const float2 v = reinterpret_cast<const float2*>(args.scratch_peers[r] + stage)[i];
      sum = {sum.x + v.x, sum.y + v.y};
    }
    reinterpret_cast<float2*>(args.out)[i] = sum;
  }
  __syncthreads();
  if (thread == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 2 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Reduce<<<blocks, kThreads, 0, stream>>>(args);
}
