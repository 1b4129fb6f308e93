#include <allranks/flags.h>

// A block finds the k-th largest key of a query by bisection, and lists the keys from there on, in
// any order, in its own rank's memory. The query's owner loads the lists from where they are. They
// exist twice: a block waits for all peers in every call, so in call k + 2 all have left call k.

constexpr int kMaxBlocks = 64, kThreads = 256, kMaxKeys = 4096;
using Key = unsigned long long;

struct Control { std::uint32_t calls[kMaxBlocks], listed[kMaxBlocks][kMaxRanks]; };

__device__ Key* ListOf(const Args& args, int rank, std::uint32_t call, int query) {
  Key* lists = reinterpret_cast<Key*>(args.scratch_peers[rank] + sizeof(Control));
  return lists + (call % 2 * args.world * args.per + query) * args.k;
}

__global__ void __launch_bounds__(kThreads) Search(Args args) {
  __shared__ Key keys[kMaxKeys];  // of all rows, later of all lists
  __shared__ int count;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int rows = args.rows, k = args.k, per = args.per, world = args.world;
  const int kept = min(k, rows), t = threadIdx.x, threads = blockDim.x;

  for (int query = blockIdx.x; query < world * per; query += gridDim.x) {
    for (int row = t; row < rows; row += threads) {
      const int* a = reinterpret_cast<const int*>(args.queries) + query * 4 * args.quads;
      const int* b = reinterpret_cast<const int*>(args.database) + row * 4 * args.quads;
      int score = 0x80000000;
      for (int i = 0; i < 4 * args.quads; ++i) score = __dp4a(a[i], b[i], score);
      const auto id = static_cast<unsigned>(args.rank * rows + row);
      keys[row] = static_cast<Key>(static_cast<unsigned>(score)) << 32 | ~id;
    }
    if (t == 0) count = 0;
    __syncthreads();
    Key least = 0;
    for (int bit = 63; bit >= 0; --bit) {
      int larger = 0;
      for (int base = 0; base < rows; base += threads) {
        const int row = base + t;
        larger += __syncthreads_count(row < rows && keys[row] >= (least | Key{1} << bit));
      }
      if (larger >= kept) least |= Key{1} << bit;
    }
    Key* list = ListOf(args, args.rank, call, query);
    for (int row = t; row < rows; row += threads) {
      if (keys[row] >= least) list[atomicAdd(&count, 1)] = keys[row];
    }
    __syncthreads();
  }
  if (t < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t]);
    allranks::StoreReleaseSys(&peer->listed[blockIdx.x][args.rank], call);
    allranks::WaitAcquireSys(&mine->listed[blockIdx.x][t], call);
  }
  __syncthreads();

  const int first = args.rank * per;
  for (int query = blockIdx.x; query < first + per; query += gridDim.x) {
    if (query < first) continue;
    for (int i = t; i < world * kept; i += threads) {
      keys[i] = ListOf(args, i / kept, call, query)[i % kept];
    }
    __syncthreads();
    for (int i = t; i < world * kept; i += threads) {
      int place = 0;
      for (int j = 0; j < world * kept; ++j) place += keys[j] > keys[i];
      if (place >= k) continue;
      args.score[(query - first) * k + place] = static_cast<int>(keys[i] >> 32 ^ 0x80000000u);
      args.index[(query - first) * k + place] = static_cast<int>(~static_cast<unsigned>(keys[i]));
    }
    __syncthreads();
  }
  if (t == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t queries = args.world * args.per, warps = (args.rows + 31) / 32;
  const std::int64_t threads = warps * 32 < kThreads ? warps * 32 : kThreads;
  Search<<<queries < kMaxBlocks ? queries : kMaxBlocks, threads, 0, stream>>>(args);
}
