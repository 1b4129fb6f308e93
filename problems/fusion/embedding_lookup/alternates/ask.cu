#include <allranks/flags.h>

// Every rank gives its list of ids to all peers. A peer stores the rows that it holds into slots at
// the asking rank, at their places in the list; from there that rank copies them to `out`. One
// block per peer asks and answers; it copies what came from its peer. Lists and slots exist twice,
// for odd and even calls: whoever has a peer's list of call k + 1 knows that the peer's kernel of
// call k has ended.

using namespace allranks;
constexpr int kThreads = 1024, kLanes = 8;  // lanes that copy one row

struct Control {
  std::uint32_t calls[kMaxRanks];                       // by block
  std::uint32_t asked[kMaxRanks], answered[kMaxRanks];  // by peer: the last call
};

// What one thread tells the same block of the peer, and hears from it.
__device__ void Exchange(std::uint32_t* tell, std::uint32_t* hear, std::uint32_t call) {
  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(tell, call);
    WaitAcquireSys(hear, call);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) LookUp(Args args) {
  const int peer = blockIdx.x, rank = args.rank, world = args.world;
  const int quads = args.quads, queries = args.queries, vocab = args.vocab;
  const int per = (vocab + world - 1) / world, group = threadIdx.x / kLanes;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
  const std::uint32_t call = mine->calls[peer] + 1, odd = call % 2;
  // Both sets of slots, then the lists by parity and asking rank.
  const auto slots = [&](Control* of) {
    return reinterpret_cast<uint4*>(of + 1) + std::int64_t{odd} * queries * quads;
  };
  const auto list = [&](Control* of, int from) {
    uint4* end = reinterpret_cast<uint4*>(of + 1) + std::int64_t{2} * queries * quads;
    return reinterpret_cast<std::int32_t*>(end) + (odd * world + from) * queries;
  };

  for (int i = threadIdx.x; i < queries; i += kThreads) list(theirs, rank)[i] = args.ids[i];
  Exchange(&theirs->asked[rank], &mine->asked[peer], call);
  const std::int32_t* ids = list(mine, peer);
  for (int i = group; i < queries; i += kThreads / kLanes) {
    if (ids[i] >= vocab || ids[i] / per != rank) continue;
    const uint4* row = reinterpret_cast<const uint4*>(args.shard) + ids[i] % per * quads;
    for (int at = threadIdx.x % kLanes; at < quads; at += kLanes) {
      slots(theirs)[i * quads + at] = row[at];
    }
  }
  Exchange(&theirs->answered[rank], &mine->answered[peer], call);
  for (int i = group; i < queries; i += kThreads / kLanes) {
    const int id = args.ids[i], holder = id < vocab ? id / per : rank;
    if (holder != peer) continue;
    for (int at = threadIdx.x % kLanes; at < quads; at += kLanes) {
      reinterpret_cast<uint4*>(args.out)[i * quads + at] =
          id < vocab ? slots(mine)[i * quads + at] : make_uint4(0, 0, 0, 0);
    }
  }
  if (threadIdx.x == 0) mine->calls[peer] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  LookUp<<<args.world, kThreads, 0, stream>>>(args);
}
