#include <allranks/flags.h>

// Ranks share the pairs: each compares its own objects with all, and the rows of bits that result
// are exchanged as the objects were, by pushes into slots at all peers. Then every rank decides by
// itself, in rounds. One block of as many warps as a rank has objects does all of it.
//
// Slots exist twice, for odd and even calls: a rank that writes in call k + 2 has seen all flags of
// call k + 1, whose senders had ended call k.

using namespace allranks;

constexpr int kThreads = 1024, kObjects = 256, kWords = kObjects / 32;

struct alignas(16) Control {
  std::uint32_t rows[2][kObjects][kWords];  // by object: those before it that overlap with it
  std::uint64_t sent[2][kMaxRanks];         // by source: call, objects
  std::uint32_t compared[kMaxRanks];        // by source: the last call whose rows are here
  std::uint32_t calls;
};

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}

__global__ void __launch_bounds__(kThreads) Suppress(Args args) {
  __shared__ int counts[kMaxRanks], slot_of[kObjects];
  __shared__ std::uint32_t kept[kWords], undecided[kWords];
  Control* mine = ControlOf(args, args.rank);
  const std::uint32_t call = mine->calls + 1, odd = call % 2;
  const int world = args.world, rank = args.rank, quads = args.quads, n = args.n;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, count = args.count[0];
  const auto masks = [&](int at) { return reinterpret_cast<uint4*>(ControlOf(args, at) + 1); };
  const auto scores = [&](int at) {
    return reinterpret_cast<std::int32_t*>(masks(at) + 2 * world * n * quads);
  };
  const int own = (odd * world + rank) * n;  // the first of this rank's slots
  for (int i = threadIdx.x; i < world * count * quads; i += kThreads) {
    const int at = i % (count * quads);
    masks(i / (count * quads))[own * quads + at] = reinterpret_cast<const uint4*>(args.masks)[at];
  }
  if (warp < world && lane < count) scores(warp)[own + lane] = args.scores[lane];
  __syncthreads();
  if (threadIdx.x < world) {
    StoreReleaseSys(&ControlOf(args, threadIdx.x)->sent[odd][rank],
                    std::uint64_t{call} << 32 | count);
    std::uint64_t word;
    do {
      word = LoadAcquireSys(&mine->sent[odd][threadIdx.x]);
    } while (word >> 32 != call);
    counts[threadIdx.x] = static_cast<int>(word);
  }
  __syncthreads();
  int objects = 0, first = 0;
  for (int s = 0; s < world; ++s) {
    if (warp == s && lane < counts[s]) slot_of[objects + lane] = (odd * world + s) * n + lane;
    if (s == rank) first = objects;
    objects += counts[s];
  }
  __syncthreads();

  const int words = (objects + 31) / 32, j = first + warp;
  for (int w = 0; w < words && warp < count; ++w) {
    const int i = w * 32 + lane;
    bool before = false;
    if (i < objects) {
      const int a = slot_of[i], b = slot_of[j], lead = scores(rank)[a] - scores(rank)[b];
      int both = 0, any = 0;
      for (int q = 0; q < quads; ++q) {
        const uint4 x = masks(rank)[a * quads + q], y = masks(rank)[b * quads + q];
        both += __popc(x.x & y.x) + __popc(x.y & y.y) + __popc(x.z & y.z) + __popc(x.w & y.w);
        any += __popc(x.x | y.x) + __popc(x.y | y.y) + __popc(x.z | y.z) + __popc(x.w | y.w);
      }
      before = (lead > 0 || (lead == 0 && i < j)) && 5 * both > 2 * any;
    }
    const std::uint32_t row = __ballot_sync(~0u, before);
    if (lane < world) ControlOf(args, lane)->rows[odd][j][w] = row;
  }
  if (threadIdx.x < kWords) {
    kept[threadIdx.x] = 0;
    undecided[threadIdx.x] = ~0u;
  }
  __syncthreads();
  if (threadIdx.x < world) {
    StoreReleaseSys(&ControlOf(args, threadIdx.x)->compared[rank], call);
    WaitAcquireSys(&mine->compared[threadIdx.x], call);
  }
  bool open = threadIdx.x < objects, is_kept = false;
  while (__syncthreads_or(open)) {
    bool waits = false;
    for (int w = 0; w < words && open; ++w) {
      const std::uint32_t row = mine->rows[odd][threadIdx.x][w];
      if ((row & kept[w]) != 0) open = false;
      if ((row & undecided[w]) != 0) waits = true;
    }
    if (open && !waits) {
      is_kept = true;
      open = false;
    }
    const std::uint32_t now_kept = __ballot_sync(~0u, is_kept);
    const std::uint32_t still_open = __ballot_sync(~0u, open);
    __syncthreads();
    if (lane == 0 && warp < kWords) {
      kept[warp] = now_kept;
      undecided[warp] = still_open;
    }
  }
  if (threadIdx.x >= first && threadIdx.x < first + count) args.keep[threadIdx.x - first] = is_kept;
  const int all = __syncthreads_count(is_kept);
  if (threadIdx.x == 0) {
    args.total[0] = all;
    mine->calls = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Suppress<<<1, kThreads, 0, stream>>>(args);
}
