// Owners are asked, and send samples. One block per rank; in each hop it sorts the nodes that it
// needs by owner into lists at the owners, each with the place of its sample; then warp r serves
// rank r and stores samples into that rank's memory, with -1 behind the last neighbour.
//
// Lists and samples of both hops have their own places. In call k + 1 they are overwritten when all
// have answered the second hop of call k, or have entered call k + 1.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 1024, kMaxWords = 131072 / 32, kMaxList = 512 * 8;

// The beginning of every rank's scratch; samples follow, then lists by asking rank.
struct Control {
  std::uint32_t calls;
  std::uint64_t asked[2][kMaxRanks];     // by hop and rank: call, nodes
  std::uint32_t answered[2][kMaxRanks];  // by hop and owner: the last call
};

__device__ int* Samples(const Args& args, int at, int hop) {
  return reinterpret_cast<int*>(args.scratch_peers[at] + 256) + hop * args.batch * args.fanout;
}
__device__ int2* List(const Args& args, int at, int hop, int from) {
  const std::int64_t samples = args.batch * args.fanout * (args.fanout + 1);
  int2* lists = reinterpret_cast<int2*>(Samples(args, at, 0) + (samples + 1) / 2 * 2);
  return lists + from * args.batch * (args.fanout + 1) + hop * args.batch;
}

__global__ void __launch_bounds__(kThreads) Sample(Args args) {
  __shared__ std::uint32_t seen[kMaxWords], wanted[kMaxRanks];
  __shared__ int list[kMaxList], listed, before[kThreads];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, world = args.world;
  const int fanout = args.fanout, batch = args.batch, nodes = args.nodes, width = args.width;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  const auto see = [&](int node) {
    const std::uint32_t bit = 1u << node % 32;
    return (atomicOr(&seen[node / 32], bit) & bit) == 0;
  };
  for (int i = thread; i < kMaxWords; i += kThreads) seen[i] = 0;
  if (thread == 0) listed = 0;
  __syncthreads();
  for (int i = thread; i < batch; i += kThreads) see(args.seeds[i]);
  for (int hop = 0; hop < 2; ++hop) {
    if (thread < kMaxRanks) wanted[thread] = 0;
    __syncthreads();
    const int count = hop == 0 ? batch : listed;
    for (int i = thread; i < count; i += kThreads) {
      const int node = hop == 0 ? args.seeds[i] : list[i], owner = node / nodes;
      const std::uint32_t at = atomicAdd(&wanted[owner], 1);
      List(args, owner, hop, args.rank)[at] = make_int2(node - owner * nodes, i);
    }
    __syncthreads();
    if (warp < world) {
      Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[warp]);
      if (lane == 0) {
        StoreReleaseSys(&theirs->asked[hop][args.rank], std::uint64_t{call} << 32 | wanted[warp]);
      }
      std::uint64_t word;
      do {
        word = LoadAcquireSys(&mine->asked[hop][warp]);
      } while (word >> 32 != call);
      const int2* asked = List(args, args.rank, hop, warp);
      int* samples = Samples(args, warp, hop);
      for (int i = lane; i < static_cast<int>(word) * fanout; i += 32) {
        const int2 row = asked[i / fanout];
        const int j = i % fanout, most = min(width, args.degree[row.x]);
        samples[row.y * fanout + j] = j < most ? args.neighbours[row.x * width + j] : -1;
      }
      __syncwarp();
      if (lane == 0) {
        StoreReleaseSys(&theirs->answered[hop][args.rank], call);
        WaitAcquireSys(&mine->answered[hop][warp], call);
      }
    }
    __syncthreads();
    for (int i = thread; i < count * fanout; i += kThreads) {
      const int node = Samples(args, args.rank, hop)[i];
      if (hop == 0) args.picked[i] = node;
      if (node >= 0 && see(node) && hop == 0) list[atomicAdd(&listed, 1)] = node;
    }
    __syncthreads();
  }
  constexpr int kWords = kMaxWords / kThreads;
  int own = 0;
  for (int w = 0; w < kWords; ++w) own += __popc(seen[thread * kWords + w]);
  before[thread] = own;
  for (int d = 1; d < kThreads; d *= 2) {
    __syncthreads();
    const int other = thread >= d ? before[thread - d] : 0;
    __syncthreads();
    before[thread] += other;
  }
  int at = before[thread] - own;
  for (int w = 0; w < kWords; ++w) {
    for (std::uint32_t left = seen[thread * kWords + w]; left != 0; left &= left - 1) {
      args.ids[at++] = (thread * kWords + w) * 32 + __ffs(left) - 1;
    }
  }
  if (thread == kThreads - 1) args.count[0] = at;
  if (thread == 0) mine->calls = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Sample<<<1, kThreads, 0, stream>>>(args);
}
