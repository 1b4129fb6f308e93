#include <allranks/flags.h>

// The database travels instead of candidates: every rank stores its shard at all others, and then
// alone compares its queries with all rows, of which it takes the best one k times. Copies of
// shards exist twice, for odd and even calls: a rank leaves call k + 1 with flags of all ranks,
// which have left call k then and need its copies no longer.

constexpr int kThreads = 1024, kMaxK = 32, kShards = 256;
using Key = unsigned long long;

struct Control { std::uint32_t calls, stored[kMaxRanks]; };  // stored: by source, the last call

__global__ void __launch_bounds__(kThreads) Search(Args args) {
  extern __shared__ int scores[];
  __shared__ Key found[kMaxK];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  const int width = 4 * args.quads, words = args.rows * width, t = threadIdx.x;
  const int all = args.world * args.rows, kept = args.k < all ? args.k : all;
  const std::int64_t set = kShards + call % 2 * sizeof(int) * args.world * words;
  const int* database = reinterpret_cast<const int*>(args.database);
  for (int r = 0; r < args.world; ++r) {
    int* copy = reinterpret_cast<int*>(args.scratch_peers[r] + set) + args.rank * words;
    for (int i = t; i < words; i += kThreads) copy[i] = database[i];
  }
  __syncthreads();
  if (t < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t]);
    allranks::StoreReleaseSys(&peer->stored[args.rank], call);
    allranks::WaitAcquireSys(&mine->stored[t], call);
  }
  __syncthreads();

  for (std::int64_t p = 0; p < args.per; ++p) {
    const int* query = reinterpret_cast<const int*>(args.queries);
    query += (args.rank * args.per + p) * width;
    for (int id = t; id < all; id += kThreads) {
      const int* row = reinterpret_cast<const int*>(args.scratch + set) + id * width;
      scores[id] = 0;
      for (int i = 0; i < width; ++i) scores[id] = __dp4a(query[i], row[i], scores[id]);
    }
    if (t < kMaxK) found[t] = 0;
    __syncthreads();
    for (int place = 0; place < kept; ++place) {
      const Key last = place > 0 ? found[place - 1] : ~Key{0};
      Key best = 0;
      for (int id = t; id < all; id += kThreads) {
        const unsigned high = static_cast<unsigned>(scores[id]) ^ 0x80000000u;
        const Key key = static_cast<Key>(high) << 32 | ~static_cast<unsigned>(id);
        if (key < last && key > best) best = key;
      }
      atomicMax(&found[place], best);
      __syncthreads();
    }
    if (t < kept) {
      args.score[p * args.k + t] = static_cast<int>(found[t] >> 32 ^ 0x80000000u);
      args.index[p * args.k + t] = static_cast<int>(~static_cast<unsigned>(found[t]));
    }
    __syncthreads();
  }
  if (t == 0) mine->calls = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaFuncSetAttribute(Search, cudaFuncAttributeMaxDynamicSharedMemorySize, 131072);
  Search<<<1, kThreads, args.world * args.rows * sizeof(int), stream>>>(args);
}
