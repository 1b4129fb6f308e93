#include <allranks/flags.h>

// Owners score: every rank gives its heads and lists to all peers, a peer stores the scores of the
// nodes that it holds at the asking rank, and that rank compares. One block per peer asks and
// answers; then every block waits for all peers, and its warps compare the lists of some queries.
// What ranks leave at each other exists twice, for odd and even calls: a rank that asks in call
// k + 2 has all answers of call k + 1, whose senders had ended call k.

using namespace allranks;
constexpr int kThreads = 512, kWarps = kThreads / 32;

struct Control {
  std::uint32_t calls[kMaxRanks];                       // by block
  std::uint32_t asked[kMaxRanks], answered[kMaxRanks];  // by peer: the last call
};

// What lies behind the controls of a rank, by parity: heads and lists by asking rank, and scores.
struct Places {
  uint4* heads;
  int *positives, *counts, *negatives, *scores;  // scores of true nodes, then of negatives
  __device__ Places(const Args& args, int at, int odd, int from) {
    const std::int64_t list = 2 * args.queries + args.most, box = odd * args.world + from;
    heads = reinterpret_cast<uint4*>(args.scratch_peers[at] + sizeof(Control));
    int* lists = reinterpret_cast<int*>(heads + 2 * args.world * args.queries * args.quads);
    heads += box * args.queries * args.quads;
    positives = lists + box * list;
    counts = positives + args.queries;
    negatives = counts + args.queries;
    scores = lists + (2 * args.world + odd) * list;
  }
};

__device__ int Score(const Args& args, const uint4* head, int id) {
  const int quads = args.quads, row = id % static_cast<int>(args.rows);
  const int* a = reinterpret_cast<const int*>(head);
  const int* b = reinterpret_cast<const int*>(args.table) + row * quads * 4;
  int sum = 0;
  for (int i = 0; i < 4 * quads; ++i) sum = __dp4a(a[i], b[i], sum);
  return sum;
}

__global__ void __launch_bounds__(kThreads) Rank(Args args) {
  const int peer = blockIdx.x, rank = args.rank, world = args.world, rows = args.rows;
  const int quads = args.quads, queries = args.queries, most = args.most;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
  const std::uint32_t call = mine->calls[peer] + 1;
  const int odd = call % 2;

  const Places give(args, peer, odd, rank), got(args, rank, odd, peer);
  for (int i = threadIdx.x; i < queries * quads; i += kThreads) {
    give.heads[i] = reinterpret_cast<const uint4*>(args.heads)[i];
  }
  for (int i = threadIdx.x; i < queries; i += kThreads) {
    give.positives[i] = args.positives[i];
    give.counts[i] = args.counts[i];
  }
  for (int i = threadIdx.x; i < most; i += kThreads) give.negatives[i] = args.negatives[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(&theirs->asked[rank], call);
    WaitAcquireSys(&mine->asked[peer], call);
  }
  __syncthreads();
  for (int q = 0, begin = 0; q < queries; begin += got.counts[q++]) {
    if (q % kWarps != warp) continue;
    for (int i = lane - 1; i < got.counts[q]; i += 32) {  // -1: the true node
      const int id = i < 0 ? got.positives[q] : got.negatives[begin + i];
      if (id / rows != rank) continue;
      give.scores[i < 0 ? q : queries + begin + i] = Score(args, got.heads + q * quads, id);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) StoreReleaseSys(&theirs->answered[rank], call);
  if (threadIdx.x < world) WaitAcquireSys(&mine->answered[threadIdx.x], call);
  __syncthreads();
  for (int q = 0, begin = 0; q < queries; begin += args.counts[q++]) {
    if (q % (kWarps * world) != peer * kWarps + warp) continue;
    int wins = 0;
    for (int i = begin + lane; i < begin + args.counts[q]; i += 32) {
      const int score = got.scores[queries + i], at_stake = got.scores[q];
      wins += score > at_stake || (score == at_stake && args.negatives[i] < args.positives[q]);
    }
    wins = __reduce_add_sync(~0u, wins);
    if (lane == 0) args.place[q] = 1 + wins;
  }
  if (threadIdx.x == 0) mine->calls[peer] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Rank<<<args.world, kThreads, 0, stream>>>(args);
}
