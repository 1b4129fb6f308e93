#include <allranks/flags.h>

// With few keys a trip between ranks costs more than their bytes: there are no splitters. Every
// rank stores its keys at all ranks, in words that carry the number of the call, each at its place
// in its rank's order, which a team of lanes finds by counting smaller keys. Then every block has
// the sorted runs of all ranks, finds the place of keys among all by binary search in the other
// runs, and writes those that fall to its rank.
//
// Equal keys are ordered by rank and place in its run: a key of a lower rank, equal to x, is less
// than x + 1. Counts and runs exist twice, for odd and even calls. Whoever leaves call k + 1 has
// counts of call k + 1 from all ranks, which have left call k and need its runs no longer.

using namespace allranks;

constexpr int kThreads = 512, kWarps = kThreads / 32, kMaxBlocks = 32;
constexpr int kLanes = 8, kTeams = kThreads / kLanes;  // a team of lanes ranks one own key
constexpr int kAhead = 4, kStep = 4 * kLanes * kAhead;  // keys that a team looks at together
constexpr std::uint32_t kNone = ~0u;                    // larger than any key
constexpr int kMaxKeys = 2048, kMaxShared = 4 * kMaxKeys * (2 * kMaxRanks + 1);

struct alignas(16) Control {
  std::uint64_t counts[2][kMaxRanks];  // by rank: call, keys
  std::uint32_t calls[kMaxBlocks];     // that the block has completed
};
struct alignas(16) Pair { std::uint64_t word[2]; };

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}
// The run of `source` at a rank: words of a call and a key.
__device__ Pair* Run(const Args& args, int at, std::uint32_t call, int source) {
  const int run = call % 2 * args.world + source, pairs = static_cast<int>(args.most + 1) / 2;
  return reinterpret_cast<Pair*>(ControlOf(args, at) + 1) + run * pairs;
}

__device__ Pair Look(const Pair* from) {
  Pair p;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(p.word[0]), "=l"(p.word[1])
               : "l"(from)
               : "memory");  //@look
  return p;
}

// Sends the keys of this rank, each to its place in its run at every rank.
__device__ void SendKeys(const Args& args, const std::uint32_t* own, int n, std::uint32_t call) {
  const uint4* chunks = reinterpret_cast<const uint4*>(own);
  const int lane = threadIdx.x % kLanes;
  for (int base = blockIdx.x * kTeams; base < n; base += gridDim.x * kTeams) {
    const int i = base + threadIdx.x / kLanes;
    const std::uint32_t key = own[min(i, n - 1)];
    int place = lane < i % 4 && own[i / 4 * 4 + lane] == key;
    for (int c = lane; 4 * (c - lane) < n; c += kLanes * kAhead) {
      uint4 v[kAhead];
#pragma unroll
      for (int j = 0; j < kAhead; ++j) v[j] = chunks[c + j * kLanes];
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        const std::uint32_t bound = key + (c + j * kLanes < i / 4);
        place += (v[j].x < bound) + (v[j].y < bound) + (v[j].z < bound) + (v[j].w < bound);
      }
    }
    for (int d = kLanes / 2; d > 0; d /= 2) place += __shfl_xor_sync(~0u, place, d);
    if (i < n && lane < args.world) {
      std::uint64_t* run = reinterpret_cast<std::uint64_t*>(Run(args, lane, call, args.rank));
      StoreRelaxedSys(&run[place], std::uint64_t{call} << 32 | key);  //@send
    }
  }
}

__global__ void __launch_bounds__(kThreads) Sort(Args args) {
  extern __shared__ uint4 shared[];
  __shared__ int counts[kMaxRanks];
  const int world = args.world, rank = args.rank, most = args.most, t = threadIdx.x;
  const int span = max(1 << (32 - __clz(most)), 4);  // of a run here: a power of two above most
  std::uint32_t* runs = reinterpret_cast<std::uint32_t*>(shared);
  std::uint32_t* own = runs + world * span;
  Control* mine = ControlOf(args, rank);
  std::uint32_t key[kMaxKeys / kThreads];  // loaded together with the counts
#pragma unroll
  for (int j = 0; j < kMaxKeys / kThreads; ++j) {
    key[j] = t + j * kThreads < most ? args.keys[t + j * kThreads] : kNone;
  }
  const int n = *args.count;
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  if (blockIdx.x == 0 && t < world) {
    std::uint64_t* word = &ControlOf(args, t)->counts[call % 2][rank];
    StoreRelaxedSys(word, std::uint64_t{call} << 32 | static_cast<std::uint32_t>(n));  //@tell
  }
#pragma unroll
  for (int j = 0; j < kMaxKeys / kThreads; ++j) {
    const int i = t + j * kThreads;
    if (i < (most + kStep - 1) / kStep * kStep) own[i] = i < n ? key[j] : kNone;
  }
  __syncthreads();
  SendKeys(args, own, n, call);

  for (int i = t; i < world * span / 4; i += kThreads) shared[i] = {kNone, kNone, kNone, kNone};
  if (t < kMaxRanks) {
    std::uint64_t word = 0;
    if (t < world) {
      do {
        word = LoadRelaxedSys(&mine->counts[call % 2][t]);  //@hear
      } while (word >> 32 != call);
    }
    counts[t] = static_cast<int>(static_cast<std::uint32_t>(word));
  }
  __syncthreads();
  int count[kMaxRanks], total = 0, before = 0;
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {
    count[r] = counts[r];
    total += count[r];
    if (r < rank) before += count[r];  //@before
  }

  for (int p = t; 2 * p < most; p += kThreads) {
    Pair v[kMaxRanks];
    std::uint32_t missing = 0;  // runs that have this pair, which has not been seen
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) missing |= (2 * p < count[r] ? 1u : 0u) << r;
    while (missing != 0) {
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (missing >> r & 1) v[r] = Look(&Run(args, rank, call, r)[p]);
      }
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        const bool both = 2 * p + 1 < count[r];
        const bool here = v[r].word[0] >> 32 == call && (!both || v[r].word[1] >> 32 == call);
        if ((missing >> r & 1) == 0 || !here) continue;
        std::uint32_t* to = &runs[r * span + 2 * p];
        to[0] = static_cast<std::uint32_t>(v[r].word[0]);
        if (both) to[1] = static_cast<std::uint32_t>(v[r].word[1]);
        missing &= ~(1u << r);
      }
    }
  }
  __syncthreads();  //@gathered

  const int step_of_all = gridDim.x * kThreads, warp = t / 32;
  for (int e = (warp * gridDim.x + blockIdx.x) * 32 + t % 32; e < total; e += step_of_all) {
    int source = 0, start = 0, end = 0;
#pragma unroll
    for (int r = 0; r < kMaxRanks - 1; ++r) {
      end += count[r];
      if (e >= end) source = r + 1, start = end;
    }
    const std::uint32_t x = runs[source * span + e - start];
    int at[kMaxRanks] = {};
    for (int step = span / 2; step > 0; step /= 2) {
      std::uint32_t probe[kMaxRanks];
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        probe[r] = count[r] > 0 ? runs[r * span + at[r] + step - 1] : kNone;
      }
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) at[r] += probe[r] < x + (r < source) ? step : 0;
    }
    int place = e - start - before;
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) place += r != source ? at[r] : 0;
    if (place >= 0 && place < n) args.out[place] = x;
  }
  if (t == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  std::int64_t span = 4;
  while (span <= args.most) span *= 2;
  const std::int64_t own = (args.most + kStep - 1) / kStep * kStep;
  const std::int64_t needed = (args.most + kTeams - 1) / kTeams;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  cudaFuncSetAttribute(Sort, cudaFuncAttributeMaxDynamicSharedMemorySize, kMaxShared);
  Sort<<<blocks, kThreads, 4 * (args.world * span + own), stream>>>(args);
}
