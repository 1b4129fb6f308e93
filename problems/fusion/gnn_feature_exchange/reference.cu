#include <allranks/flags.h>

// Every rank copies its features to a stage in its own memory and says so; then it loads
// the rows on its list from the stages of their owners. A stage, unlike the features themselves,
// may still be read when its owner is in the next call: no rank has to wait for its readers.
//
// A block stages a part of the rows, but may need any row: it waits for all blocks of all ranks,
// which count at their peers, and looks up its rows meanwhile. Stages exist twice, for odd and even
// calls. A block that writes in call k + 2 has seen that all blocks of all peers have staged in
// call k + 1. They had ended call k then, and had read their rows.

using namespace allranks;

constexpr int kThreads = 1024, kMaxBlocks = 16, kLanes = 16;  // lanes that copy one row

// The beginning of every rank's scratch; stages follow.
struct alignas(16) Control {
  std::uint32_t calls[kMaxBlocks];  // that the block has completed
  std::uint32_t staged[kMaxRanks];  // by peer: how often its blocks have staged, over all calls
};

// Where entry i of the list is to be found; owner == world behind the end of the list.
struct Place {
  int owner, row;
  __device__ Place(const Args& args, int i) : owner(0), row(i < args.most ? args.ids[i] : 0) {
    int counts[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) counts[r] = r < args.world ? args.counts[r] : 0;
    int end = 0;
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) owner += r < args.world && i >= (end += counts[r]);
  }
};

__global__ void __launch_bounds__(kThreads) Fetch(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int world = args.world, quads = args.quads, vectors = args.rows * quads;
  const std::int64_t set = call % 2 * vectors;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  Place place(args, first / kLanes);

  uint4* stage = reinterpret_cast<uint4*>(mine + 1) + set;
  for (int i = first; i < vectors; i += stride) {
    stage[i] = reinterpret_cast<const uint4*>(args.features)[i];
  }
  __syncthreads();  //@staged
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    AddReleaseSys(&peer->staged[args.rank], 1u);                   //@tell
    WaitAcquireSys(&mine->staged[threadIdx.x], call * gridDim.x);  //@wait
  }
  __syncthreads();  //@arrived

  for (int i = first / kLanes; place.owner < world; i += stride / kLanes) {
    const Control* theirs = reinterpret_cast<const Control*>(args.scratch_peers[place.owner]);
    const uint4* row = reinterpret_cast<const uint4*>(theirs + 1) + set + place.row * quads;
    uint4* to = reinterpret_cast<uint4*>(args.out) + i * quads;
    place = Place(args, i + stride / kLanes);
    for (int at = threadIdx.x % kLanes; at < quads; at += kLanes) to[at] = row[at];
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t lanes = args.most * kLanes, vectors = args.rows * args.quads;
  const std::int64_t needed = ((lanes > vectors ? lanes : vectors) + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  Fetch<<<blocks, kThreads, 0, stream>>>(args);
}
