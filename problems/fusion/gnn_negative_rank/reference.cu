#include <allranks/flags.h>

// Every rank copies its table to a stage in its own symmetric memory and says so by flags; then it
// loads the rows of its nodes from the stages of their owners and compares scores. Entries of all
// lists are cut evenly over blocks, since lists differ in length. In a block four lanes score one
// entry; those of the first entry of a list score the true node as well. All rows that lanes need
// are on their way at the same time.
//
// A block waits for all blocks of all ranks: it may need any row, and `place` is set to 1 by any
// block of its rank before others add to it. Stages exist twice, for odd and even calls. A block
// that writes in call k + 2 has seen the flags of all blocks of all peers for call k + 1: they had
// read their rows of call k then.

using namespace allranks;

constexpr int kThreads = 1024, kMaxBlocks = 8, kLanes = 4, kGroups = kThreads / kLanes;
constexpr int kMaxQueries = 1024, kBatch = 2;

// The beginning of every rank's scratch; stages follow.
struct Control {
  std::uint32_t calls[kMaxBlocks];              // that the block has completed
  std::uint32_t staged[kMaxRanks][kMaxBlocks];  // by peer: the last call that the block has staged
};

// Where the list of every query begins; starts[queries] is the end of the last one.
__device__ void FindStarts(const Args& args, int* starts) {
  __shared__ int totals[kThreads / 32];
  constexpr int kEach = kMaxQueries / kThreads;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int count[kEach], sum = 0;
  for (int j = 0; j < kEach; ++j) {
    const int query = threadIdx.x * kEach + j;
    count[j] = query < args.queries ? args.counts[query] : 0;
  }
  for (int j = 0; j < kEach; ++j) sum += count[j];
  int start = -sum;
  for (int d = 1; d < 32; d *= 2) {
    const int before = __shfl_up_sync(~0u, sum, d);
    if (lane >= d) sum += before;
  }
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  start += sum;
  for (int w = 0; w < warp; ++w) start += totals[w];
  for (int j = 0; j < kEach; start += count[j++]) starts[threadIdx.x * kEach + j] = start;
  if (threadIdx.x == kThreads - 1) starts[kMaxQueries] = start;
  __syncthreads();
}

// The query whose list has entry i: the last one that begins at i or before.
__device__ int QueryOf(const int* starts, int i) {
  int query = 0;
  for (int step = kMaxQueries / 2; step > 0; step /= 2) {
    if (starts[query + step] <= i) query += step;
  }
  return query;
}

// What four lanes compare at a time: entry i of all lists.
struct Entry {
  int i, query, id, positive;
  __device__ Entry(const Args& args, const int* starts, int at) : i(at) {
    const int total = starts[kMaxQueries];
    query = i < total ? QueryOf(starts, i) : 0;
    id = i < total ? args.negatives[i] : 0;
    positive = args.positives[query];
  }
};

__device__ int Dot(uint4 a, uint4 b, int sum) {
  sum = __dp4a(static_cast<int>(a.x), static_cast<int>(b.x), sum);
  sum = __dp4a(static_cast<int>(a.y), static_cast<int>(b.y), sum);
  sum = __dp4a(static_cast<int>(a.z), static_cast<int>(b.z), sum);
  return __dp4a(static_cast<int>(a.w), static_cast<int>(b.w), sum);
}

__device__ const uint4* StagedRow(const Args& args, std::int64_t set, int id) {
  const int rows = args.rows, quads = args.quads;
  return reinterpret_cast<const uint4*>(args.scratch_peers[id / rows] + sizeof(Control)) + set +
         id % rows * quads;
}

__global__ void __launch_bounds__(kThreads) Rank(Args args) {
  __shared__ int starts[kMaxQueries + 1];
  __shared__ int at_stakes[kGroups], wins[kGroups];  // by first entry: the true node's score, wins
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int world = args.world, quads = args.quads, lane = threadIdx.x % kLanes;
  const int group = threadIdx.x / kLanes;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const int entries = gridDim.x * kGroups;  // that the rank compares at a time
  const std::int64_t set = call % 2 * args.rows * quads;

  uint4* stage = reinterpret_cast<uint4*>(mine + 1) + set;
  for (int i = first; i < args.rows * quads; i += stride) {
    stage[i] = reinterpret_cast<const uint4*>(args.table)[i];
  }
  for (int i = first; i < args.queries; i += stride) args.place[i] = 1;
  __syncthreads();  //@staged
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->staged[args.rank][blockIdx.x], call);  //@tell
  }
  FindStarts(args, starts);
  const int total = starts[kMaxQueries];
  Entry e(args, starts, blockIdx.x * kGroups + group);  // on its way while we wait
  for (int i = threadIdx.x; i < world * gridDim.x; i += kThreads) {
    WaitAcquireSys(&mine->staged[i % world][i / world], call);  //@wait
  }
  __syncthreads();  //@arrived

  for (int base = blockIdx.x * kGroups; base < total; base += entries) {
    const int leader = max(starts[e.query] - base, 0);  // the group of the list's first entry here
    const bool here = e.i < total, leads = here && group == leader;
    const uint4* head = reinterpret_cast<const uint4*>(args.heads) + e.query * quads;
    const uint4 *negative = StagedRow(args, set, e.id),
                *positive = StagedRow(args, set, e.positive);
    int score = 0, at_stake = 0;
    for (int at = lane; at < quads; at += kBatch * kLanes) {
      uint4 h[kBatch] = {}, n[kBatch] = {}, p[kBatch] = {};
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        if (at + j * kLanes >= quads || !here) continue;
        h[j] = head[at + j * kLanes];
        n[j] = negative[at + j * kLanes];
        if (leads) p[j] = positive[at + j * kLanes];
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        score = Dot(h[j], n[j], score);
        at_stake = Dot(h[j], p[j], at_stake);
      }
    }
    for (int d = kLanes / 2; d > 0; d /= 2) {
      score += __shfl_xor_sync(~0u, score, d);
      at_stake += __shfl_xor_sync(~0u, at_stake, d);
    }
    if (leads && lane == 0) {
      at_stakes[group] = at_stake;
      wins[group] = 0;
    }
    __syncthreads();  //@scored
    if (here && lane == 0) {
      at_stake = at_stakes[leader];
      if (score > at_stake || (score == at_stake && e.id < e.positive)) atomicAdd(&wins[leader], 1);
    }
    __syncthreads();  //@compared
    if (leads && lane == 0 && wins[group] > 0) atomicAdd(&args.place[e.query], wins[group]);
    e = Entry(args, starts, e.i + entries);
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t entries = (args.most + kGroups - 1) / kGroups;
  const std::int64_t table = (args.rows * args.quads + kThreads - 1) / kThreads;
  const std::int64_t needed = entries > table ? entries : table;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  Rank<<<blocks, kThreads, 0, stream>>>(args);
}
