// A thread block multiplies with a group of eight lanes per word and stores the logits into this
// rank's own output alone. Others pull them: block b waits for blocks b, and reads what they have
// made. A rank leaves when all have read what is here.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;

constexpr int kBlocks = 32, kThreads = 256, kLanes = 8;

struct Control {
  std::uint32_t calls[kBlocks];
  std::uint32_t made[kBlocks][kMaxRanks], read[kBlocks][kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) Logits(Args args) {
  using Eight = Pack<__half>;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int thread = threadIdx.x, block = blockIdx.x, world = args.world;
  const int rows = args.rows, vocab = args.vocab, depth = args.depth;
  const int part = (vocab / 4 + kBlocks - 1) / kBlocks * 4, begin = block * part;
  const int words = max(0, min(part, vocab - begin));
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread % world]);
  const std::uint32_t call = mine->calls[block] + 1;
  const int items = rows * words, rounds = (items * kLanes + kThreads - 1) / kThreads;
  for (int round = 0; round < rounds; ++round) {
    const int item = (round * kThreads + thread) / kLanes, row = item / max(words, 1);
    const int word = begin + item % max(words, 1);
    float sum = 0;
    for (int i = thread % kLanes; item < items && i < depth / 8; i += kLanes) {
      const Eight a = reinterpret_cast<const Eight*>(args.hidden)[row * (depth / 8) + i];
      const Eight b = reinterpret_cast<const Eight*>(args.weight)[word * (depth / 8) + i];
      for (int e = 0; e < Eight::kCount; ++e) sum += a[e] * b[e];
    }
    for (int d = kLanes / 2; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (item < items && thread % kLanes == 0) {
      args.logits[(row * world + args.rank) * vocab + word] = sum;
    }
  }
  __syncthreads();
  if (thread < world) {
    StoreReleaseSys(&peer->made[block][args.rank], call);
    WaitAcquireSys(&mine->made[block][thread], call);
  }
  __syncthreads();
  const int quads = rows * words / 4;
  for (int i = thread; i < quads * (world - 1); i += kThreads) {
    const int from = (args.rank + 1 + i / quads) % world, at = i % quads;
    const int place =
        (at / (words / 4) * world + from) * (vocab / 4) + begin / 4 + at % (words / 4);
    reinterpret_cast<float4*>(args.logits)[place] =
        reinterpret_cast<const float4*>(args.logits_peers[from])[place];
  }
  __syncthreads();
  if (thread < world) {
    StoreReleaseSys(&peer->read[block][args.rank], call);
    WaitAcquireSys(&mine->read[block][thread], call);
  }
  if (thread == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Logits<<<kBlocks, kThreads, 0, stream>>>(args);
}
