// A block has the same vectors of all slots on every rank: it stores those of the own slots to
// their new ranks, reports that, and copies to `out` what the same blocks have sent here. The plan
// comes in words that carry the number of the call; a block loads its first vectors meanwhile,
// since it need not know for that where they will go.
//
// Staging has one place more than a rank has slots and turns by one place per call: in call k, slot
// j comes to where slot j - 1 was in call k - 1, and slot 0 to the place that was spare. A rank
// that has entered call k has emptied all places of call k - 1. Only the plan exists twice: rank 0
// sends that of call k to a rank that has entered call k - 1.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256, kMaxSlots = 64, kBatch = 8, kData = 65536;

struct Control {
  std::uint32_t calls[kMaxBlocks];               // that each block has completed
  std::uint32_t entered[kMaxRanks];              // by peer: calls that it has entered
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by source: the last call whose vectors are here
  std::uint64_t plan[2][kMaxRanks * kMaxSlots];  // call, number of the old slot
};
static_assert(sizeof(Control) <= kData);

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}
__device__ std::uint64_t* PlanOf(const Args& args, int rank, std::uint32_t call) {
  return ControlOf(args, rank)->plan[call % 2];
}
// Where slot j is staged at a rank.
__device__ uint4* Staged(const Args& args, int rank, int j, std::uint32_t call) {
  const std::uint32_t places = static_cast<std::uint32_t>(args.slots) + 1;
  const std::int64_t place = (j + places - call % places) % places;
  return reinterpret_cast<uint4*>(args.scratch_peers[rank] + kData) + place * args.quads;
}

// Eight threads per peer; blocks share the words.
__device__ void SendPlan(const Args& args, std::uint32_t call) {
  const int peer = threadIdx.x / 8;
  if (peer >= args.world) return;
  WaitAcquireSys(&ControlOf(args, 0)->entered[peer], call - 1);
  std::uint64_t* to = PlanOf(args, peer, call);
  for (int n = blockIdx.x * 8 + threadIdx.x % 8; n < args.world * args.slots; n += gridDim.x * 8) {
    StoreRelaxedSys(&to[n], std::uint64_t{call} << 32 | args.plan[n]);  //@plan
  }
}

// Vector q of eight slots, or fewer: all are on their way before the first is needed.
struct Batch {
  uint4 v[kBatch];
  template <class From>
  __device__ void Load(int count, From from) {
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      if (n < count) v[n] = *from(n);
    }
  }
  template <class To>
  __device__ void Store(int count, To to) const {
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      if (n < count) *to(n) = v[n];
    }
  }
};

__global__ void __launch_bounds__(kThreads) Rebalance(Args args) {
  __shared__ uint4 *there[kMaxSlots], *here[kMaxSlots];  // staging of own slots and of new ones
  __shared__ std::uint32_t sources;                      // bits of ranks from which slots come
  __shared__ std::uint32_t full;  // of ranks where slots go to other places than the spare one
  const int block = blockIdx.x, t = threadIdx.x, rank = args.rank;
  const int slots = static_cast<int>(args.slots), quads = static_cast<int>(args.quads);
  const int first = block * kThreads + t, stride = gridDim.x * kThreads;
  Control* mine = ControlOf(args, rank);
  const int peer = t - (kThreads - 32);  // the last warp tells of the entry, others need not wait
  if (block == 0 && peer >= 0 && peer < args.world) {
    AddReleaseSys(&ControlOf(args, peer)->entered[rank], 1u);  //@entered
  }
  const std::uint32_t call = mine->calls[block] + 1;  //@epoch
  if (rank == 0) SendPlan(args, call);
  const uint4* w = reinterpret_cast<const uint4*>(args.w);
  Batch batch;
  if (first < quads) batch.Load(slots, [&](int n) { return w + n * args.quads + first; });
  if (t == 0) sources = full = 0;
  __syncthreads();
  for (int n = t; n < args.world * slots; n += kThreads) {
    std::uint64_t word;
    do {
      word = LoadRelaxedSys(&PlanOf(args, rank, call)[n]);  //@look
    } while (word >> 32 != call);  //@planned
    const int old = static_cast<int>(word), to = n / slots, j = n % slots;
    if (old / slots == rank) there[old % slots] = Staged(args, to, j, call);
    if (old / slots == rank && j > 0) atomicOr(&full, 1u << to);
    if (to != rank) continue;
    here[j] = Staged(args, rank, j, call);
    atomicOr(&sources, 1u << old / slots);
  }
  __syncthreads();                                                                 //@known
  if (t < args.world) WaitAcquireSys(&mine->entered[t], call - (~full >> t & 1));  //@free
  __syncthreads();                                                                 //@open

  for (int q = first; q < quads; q += stride) {
    for (int i = 0; i < slots; i += kBatch) {
      if (q > first || i > 0) {
        batch.Load(slots - i, [&](int n) { return w + (i + n) * args.quads + q; });
      }
      batch.Store(slots - i, [&](int n) { return there[i + n] + q; });
    }
  }
  __syncthreads();  //@sent
  if (t < args.world) {
    StoreReleaseSys(&ControlOf(args, t)->arrived[block][rank], call);      //@publish
    if (sources >> t & 1) WaitAcquireSys(&mine->arrived[block][t], call);  //@wait
  }
  __syncthreads();  //@arrived
  uint4* out = reinterpret_cast<uint4*>(args.out);
  for (int q = first; q < quads; q += stride) {
    for (int j = 0; j < slots; j += kBatch) {
      batch.Load(slots - j, [&](int n) { return here[j + n] + q; });
      batch.Store(slots - j, [&](int n) { return out + (j + n) * args.quads + q; });
    }
  }
  if (t == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.quads + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  Rebalance<<<blocks, kThreads, 0, stream>>>(args);
}
