// Block b of all ranks has the same tokens. A prefill rank writes the heads of each slot, already
// in the new layout, into a stage at the decode rank, and publishes them by a flag for each decode
// rank that it serves. A decode rank waits for its sources only, and copies the stage to `out`. A
// head that a rank keeps several times crosses the link once.
//
// Nobody has to ask whether a peer has entered the call. There are two stages, used in turn. A
// decode rank that enters call k reports to its sources that it has read all of call k - 1; who
// writes call k needs these reports of call k - 2.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 64, kLanes = 64, kRows = 4;  // threads: by vector, by slot

struct alignas(16) Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by source: calls whose heads are here
  std::uint32_t freed[kMaxBlocks][kMaxRanks];    // by decode rank: calls whose stage it has read
};

struct Plan {
  int from, to, held, kept;
  __device__ int HeadOf(int slot) const { return slot * from * held / (to * kept); }
  // The first slot with the same head on the same rank, which stands for all of them.
  __device__ int First(int slot) const {
    while (slot % kept > 0 && HeadOf(slot - 1) == HeadOf(slot)) --slot;
    return slot;
  }
  // Heads of a rank's slots ascend, so its sources are neighbours.
  __device__ bool Serves(int p, int d) const {
    return p < from && d < to && p >= HeadOf(d * kept) / held &&
           p <= HeadOf(d * kept + kept - 1) / held;
  }
};

__global__ void __launch_bounds__(kLanes* kRows) Reshard(Args args) {
  const Plan plan = {static_cast<int>(args.from), static_cast<int>(args.to),
                     static_cast<int>(args.held), static_cast<int>(args.kept)};
  const int held = plan.held, kept = plan.kept, block = blockIdx.x;
  const int thread = threadIdx.y * kLanes + threadIdx.x;
  const int tokens = args.tokens, quads = args.quads, decode = args.rank - plan.from;
  if (decode >= plan.to) return;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[block] + 1;
  const int begin = block * tokens / gridDim.x, end = (blockIdx.x + 1) * tokens / gridDim.x;
  const int vectors = (end - begin) * quads;  // of one head
  const std::int64_t set = static_cast<std::int64_t>(call % 2 * kept) * tokens * quads;

  if (decode < 0) {
    const bool serves = plan.Serves(args.rank, thread);
    if (serves) WaitAcquireSys(&mine->freed[block][thread], call - 2);  //@free
    __syncthreads();                                                    //@room
    const uint4* cache = reinterpret_cast<const uint4*>(args.cache);
    for (int slot = threadIdx.y; slot < plan.to * kept; slot += kRows) {
      const int head = plan.HeadOf(slot), rank = plan.from + slot / kept;
      if (head / held != args.rank || plan.First(slot) != slot) continue;
      Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[rank]);
      uint4* stage = reinterpret_cast<uint4*>(theirs + 1) + set;
#pragma unroll 4
      for (int i = threadIdx.x; i < vectors; i += kLanes) {
        const int t = begin + i / quads, q = i % quads;
        const std::int64_t source = t * held + head % held;
        stage[(slot % kept * tokens + t) * quads + q] = cache[source * quads + q];
      }
    }
    __syncthreads();  //@sent
    if (serves) {
      Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[plan.from + thread]);
      StoreReleaseSys(&theirs->arrived[block][args.rank], call);  //@tell
    }
  } else {
    if (plan.Serves(thread, decode)) {
      Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[thread]);
      StoreReleaseSys(&theirs->freed[block][decode], call - 1);  //@give
      WaitAcquireSys(&mine->arrived[block][thread], call);       //@arrived
    }
    __syncthreads();  //@here
    const uint4* stage = reinterpret_cast<const uint4*>(mine + 1) + set + begin * quads;
    uint4* out = reinterpret_cast<uint4*>(args.out) + begin * quads;
    for (int k = threadIdx.y; k < kept; k += kRows) {
      const int row = plan.First(decode * kept + k) % kept;
#pragma unroll 4
      for (int i = threadIdx.x; i < vectors; i += kLanes) {
        out[k * tokens * quads + i] = stage[row * tokens * quads + i];
      }
    }
  }
  if (thread == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.tokens * args.quads + kLanes - 1) / kLanes;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Reshard<<<blocks, dim3(kLanes, kRows), 0, stream>>>(args);
}
