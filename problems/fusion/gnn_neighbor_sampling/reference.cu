// One block reads samples where they are. A set of bits in shared memory says which nodes have been
// seen; who sets a bit puts the node on the list of the next hop, so that no node is read twice in
// the second one. A thread has four neighbours of a node, one load, beside the load of the degree.
// At the end the set of bits, counted and scanned, gives the ids in order.
//
// A peer's graph may be read when it has told that it is inside the call. All tell each other after
// the second hop that they have read, and leave when they have heard that from all.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 1024, kMaxWords = 131072 / 32, kMaxList = 512 * 8;

struct Control {
  std::uint32_t calls;               // that this rank has completed
  std::uint32_t entered[kMaxRanks];  // by rank: the last call
  std::uint32_t read[kMaxRanks];     // by rank: the last call in which it needs nothing more
};

__global__ void __launch_bounds__(kThreads) Sample(Args args) {
  __shared__ std::uint32_t seen[kMaxWords], warp_sums[kThreads / 32];
  __shared__ int list[kMaxList], listed;
  const int thread = threadIdx.x, lane = thread % 32, world = args.world;
  const int batch = args.batch, fanout = args.fanout, width = args.width, nodes = args.nodes;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread % world]);
  const std::uint32_t call = mine->calls + 1;                            //@epoch
  if (thread < world) StoreReleaseSys(&peer->entered[args.rank], call);  //@enter
  for (int i = thread; i < kMaxWords; i += kThreads) seen[i] = 0;
  if (thread == 0) listed = 0;
  const auto see = [&](int node) {
    const std::uint32_t bit = 1u << node % 32;
    return (atomicOr(&seen[node / 32], bit) & bit) == 0;
  };
  __syncthreads();  //@cleared
  for (int i = thread; i < batch; i += kThreads) see(args.seeds[i]);
  if (thread < world) WaitAcquireSys(&mine->entered[thread], call);  //@open
  __syncthreads();                                                   //@entered

  const int most = min(fanout, width), quads = (most + 3) / 4;
  int nodes_of_hop = batch;
  for (int hop = 0; hop < 2; ++hop) {
    for (int i = thread; i < nodes_of_hop * quads; i += kThreads) {
      const int at = i / quads, first = i % quads * 4;
      const int node = hop == 0 ? args.seeds[at] : list[at];
      const int owner = node / nodes, row = node - owner * nodes;
      const int4 four =
          reinterpret_cast<const int4*>(args.neighbours_peers[owner])[(row * width + first) / 4];
      const int degree = args.degree_peers[owner][row];
      const int ids[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const bool taken = first + j < min(degree, fanout);
        if (hop == 0 && first + j < fanout)
          args.picked[at * fanout + first + j] = taken ? ids[j] : -1;
        if (taken && see(ids[j]) && hop == 0) list[atomicAdd(&listed, 1)] = ids[j];
      }
    }
    __syncthreads();  //@expanded
    nodes_of_hop = listed;
  }
  // Where fanouts are wider than rows.
  for (int i = thread; i < batch * fanout; i += kThreads) {
    if (i % fanout >= 4 * quads) args.picked[i] = -1;
  }
  if (thread < world) StoreReleaseSys(&peer->read[args.rank], call);  //@tell

  constexpr int kWords = kMaxWords / kThreads;
  std::uint32_t words[kWords];
  int own = 0;
  for (int w = 0; w < kWords; ++w) own += __popc(words[w] = seen[thread * kWords + w]);
  int before = own;
  for (int d = 1; d < 32; d *= 2) {
    const int other = __shfl_up_sync(~0u, before, d);
    if (lane >= d) before += other;
  }
  if (lane == 31) warp_sums[thread / 32] = before;
  __syncthreads();  //@scanned
  before -= own;
  for (int w = 0; w < thread / 32; ++w) before += warp_sums[w];
  for (int w = 0; w < kWords; ++w) {
    for (std::uint32_t left = words[w]; left != 0; left &= left - 1) {
      args.ids[before++] = (thread * kWords + w) * 32 + __ffs(left) - 1;
    }
  }
  if (thread == kThreads - 1) args.count[0] = before;
  if (thread < world) WaitAcquireSys(&mine->read[thread], call);  //@stay
  if (thread == 0) mine->calls = call;                            //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Sample<<<1, kThreads, 0, stream>>>(args);
}
