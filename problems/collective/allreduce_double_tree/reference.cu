// Behind a switch every rank is next to every other, so the trees give the order of additions only.
// Blocks of the same number have the same elements on all ranks and meet their likes.
//
// Few elements: every rank shows its input, all meet, and every rank adds up everything. Inputs are
// shown in two places by turns: who shows call k + 2 has met all in call k + 1, after their call k.
//
// Many elements: they are cut into a shard per rank. Blocks push parts to the owners and meet;
// owners add up and store the sums to everybody's `out`, and blocks meet again. Who has been met
// for the first time is in the call, so its `out` is open, and it stays until the second meeting.
// Then all owners have read their slots, so those of the next call may be written.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256, kData = 16384;
constexpr int kFewThreads = 128, kFew = 4096;  // elements

struct Control {
  std::uint32_t calls[kMaxBlocks];           // that each block has completed
  std::uint32_t met[kMaxBlocks][kMaxRanks];  // by peer: its last meeting
};
static_assert(sizeof(Control) <= kData);

// Parts of rank `source` of the shard of rank `at`.
__device__ float4* Slot(const Args& args, int at, int source, int shard) {
  return reinterpret_cast<float4*>(args.scratch_peers[at] + kData) + source * shard;
}

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  __syncthreads();  //@before
  if (threadIdx.x < args.world) {
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->met[blockIdx.x][args.rank], meeting);   //@tell
    WaitAcquireSys(&mine->met[blockIdx.x][threadIdx.x], meeting);  //@wait
  }
  __syncthreads();  //@after
}

__device__ float4 Plus(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

// The sum over all ranks in the order of the tree of vector q, span by span from the leaves up.
// `from` gives where a rank's vector is.
template <class From>
__device__ float4 TreeSum(const Args& args, int q, From from) {
  const int world = args.world, vectors = static_cast<int>(args.n / 4);
  const bool second = q >= (vectors + 1) / 2;
  float4 v[kMaxRanks];
#pragma unroll
  for (int place = 0; place < kMaxRanks; ++place) {  // all on their way before the first is needed
    const int other = world % 2 == 0 ? world - 1 - place : (place + 1) % world;
    if (place < world) v[place] = *from(second ? other : place);
  }
#pragma unroll
  for (int b = 2; b <= kMaxRanks; b *= 2) {
#pragma unroll
    for (int p = b % kMaxRanks; p < kMaxRanks; p += 2 * b) {
      if (p >= world) continue;
      if (p > 0) v[p] = Plus(v[p], v[p - b / 2]);
      bool done = false;
#pragma unroll
      for (int h = b / 2; h > 0; h /= 2) {
        if (done || p + h >= world) continue;
        v[p] = Plus(v[p], v[p + h]);
        done = true;
      }
    }
  }
  return v[0];
}

__global__ void __launch_bounds__(kFewThreads) AllReduceFew(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@few_epoch
  const int vectors = static_cast<int>(args.n / 4), q = blockIdx.x * kFewThreads + threadIdx.x;
  const auto shown = [&](int rank) {
    return reinterpret_cast<float4*>(args.scratch_peers[rank] + kData) + call % 2 * vectors + q;
  };
  if (q < vectors) *shown(args.rank) = reinterpret_cast<const float4*>(args.in)[q];
  Meet(args, call);  //@only_meeting
  if (q < vectors) reinterpret_cast<float4*>(args.out)[q] = TreeSum(args, q, shown);
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

__global__ void __launch_bounds__(kThreads) AllReduceMany(Args args) {
  const int rank = args.rank, world = args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int vectors = static_cast<int>(args.n / 4), shard = (vectors + world - 1) / world;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const float4* in = reinterpret_cast<const float4*>(args.in);
  float4 v[kMaxRanks];
  for (int i = first; i < shard; i += stride) {
#pragma unroll
    for (int step = 0; step < kMaxRanks; ++step) {  // all on their way before the first is needed
      const int q = (rank + step) % world * shard + i;
      if (step < world && q < vectors) v[step] = in[q];
    }
#pragma unroll
    for (int step = 0; step < kMaxRanks; ++step) {
      const int to = (rank + step) % world;
      if (step < world && to * shard + i < vectors) Slot(args, to, rank, shard)[i] = v[step];
    }
  }
  Meet(args, 2 * call - 1);  //@first_meeting
  for (int i = first; i < shard; i += stride) {
    const int q = rank * shard + i;
    if (q >= vectors) break;
    const float4 sum = TreeSum(args, q, [&](int r) { return Slot(args, rank, r, shard) + i; });
    for (int step = 0; step < world; ++step) {
      reinterpret_cast<float4*>(args.out_peers[(rank + step) % world])[q] = sum;
    }
  }
  Meet(args, 2 * call);                                  //@second_meeting
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t vectors = args.n / 4, shard = (vectors + args.world - 1) / args.world;
  if (args.n <= kFew) {
    const int blocks = static_cast<int>((vectors + kFewThreads - 1) / kFewThreads);
    AllReduceFew<<<blocks, kFewThreads, 0, stream>>>(args);
  } else {
    const int needed = static_cast<int>((shard + kThreads - 1) / kThreads);
    const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
    AllReduceMany<<<blocks, kThreads, 0, stream>>>(args);
  }
}
