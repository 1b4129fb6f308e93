// A thread inserts the rows that it compares with a query into a sorted list, all ranks meet, keys
// of all lists are ranked by counting, and all meet before lists are overwritten.
#include <allranks/flags.h>

constexpr int kThreads = 32, kLists = 256;

struct Control {
  std::uint32_t meetings, reached[kMaxRanks];  // completed here; by peer: the last one it came to
};
using Key = unsigned long long;

__device__ Key* ListOf(const Args& args, int rank, std::int64_t query) {
  return reinterpret_cast<Key*>(args.scratch_peers[rank] + kLists) + query * args.k;
}

__global__ void Find(Args args) {
  const std::int64_t query = blockIdx.x * kThreads + threadIdx.x, words = 4 * args.quads;
  if (query >= args.world * args.per) return;
  Key* best = ListOf(args, args.rank, query);
  for (std::int64_t row = 0; row < args.rows; ++row) {
    int score = 0;
    for (std::int64_t j = 0; j < words; ++j) {
      score = __dp4a(reinterpret_cast<const int*>(args.queries)[query * words + j],
                     reinterpret_cast<const int*>(args.database)[row * words + j], score);
    }
    const auto id = static_cast<std::uint32_t>(args.rank * args.rows + row);
    const Key key = static_cast<Key>(static_cast<std::uint32_t>(score) ^ 0x80000000u) << 32 | ~id;
    std::int64_t at = row < args.k ? row : args.k;  // keys that are in the list
    if (at == args.k && best[--at] > key) continue;
    for (; at > 0 && best[at - 1] < key; --at) best[at] = best[at - 1];
    best[at] = key;
  }
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->reached[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void MergeLists(Args args) {
  const std::int64_t kept = args.k < args.rows ? args.k : args.rows, came = args.world * kept;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < args.per * came;
       i += gridDim.x * kThreads) {
    const std::int64_t p = i / came, query = args.rank * args.per + p;
    const Key key = ListOf(args, i % came / kept, query)[i % kept];
    int place = 0;
    for (int j = 0; j < came; ++j) place += ListOf(args, j / kept, query)[j % kept] > key;
    if (place >= args.k) continue;
    args.score[p * args.k + place] = static_cast<std::int32_t>(key >> 32 ^ 0x80000000u);
    args.index[p * args.k + place] = static_cast<std::int32_t>(~static_cast<std::uint32_t>(key));
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Find<<<(args.world * args.per + kThreads - 1) / kThreads, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  MergeLists<<<16, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
