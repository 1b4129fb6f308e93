#include <allranks/flags.h>

// Every rank asks: it stores its list for an owner into a box there. The owner stores the rows into
// slots at the asking rank, at their places in the list, from where that rank copies them to `out`.
// One block per peer does both sides. Boxes and slots exist twice, for odd and even calls: whoever
// has a peer's list of call k + 1 knows that the peer has ended call k.

using namespace allranks;
constexpr int kThreads = 1024;

struct Control {
  std::uint32_t calls[kMaxRanks];                       // by block
  std::uint32_t asked[kMaxRanks], answered[kMaxRanks];  // by peer: the last call
  std::int32_t lists[2][kMaxRanks][2];  // by peer: where its list begins, its length
};

__global__ void __launch_bounds__(kThreads) Fetch(Args args) {
  const int peer = blockIdx.x, rank = args.rank, quads = args.quads, most = args.most;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
  const std::uint32_t call = mine->calls[peer] + 1, odd = call % 2;
  // Both sets of slots, then the boxes by parity and asking rank.
  const auto slots = [&](Control* of) { return reinterpret_cast<uint4*>(of + 1); };
  const auto box = [&](Control* of, int from) {
    std::int32_t* boxes = reinterpret_cast<std::int32_t*>(slots(of) + 2 * most * quads);
    return boxes + (odd * args.world + from) * most;
  };
  const int set = odd * most * quads;

  int begin = 0;
  for (int r = 0; r < peer; ++r) begin += args.counts[r];
  const int count = args.counts[peer];
  for (int i = threadIdx.x; i < count; i += kThreads) box(theirs, rank)[i] = args.ids[begin + i];
  __syncthreads();
  if (threadIdx.x == 0) {
    theirs->lists[odd][rank][0] = begin;
    theirs->lists[odd][rank][1] = count;
    StoreReleaseSys(&theirs->asked[rank], call);
    WaitAcquireSys(&mine->asked[peer], call);
  }
  __syncthreads();

  const std::int32_t place = mine->lists[odd][peer][0], wanted = mine->lists[odd][peer][1];
  const std::int32_t* ids = box(mine, peer);
  for (int i = threadIdx.x; i < wanted * quads; i += kThreads) {
    const int row = ids[i / quads];
    slots(theirs)[set + place * quads + i] =
        reinterpret_cast<const uint4*>(args.features)[row * quads + i % quads];
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(&theirs->answered[rank], call);
    WaitAcquireSys(&mine->answered[peer], call);
  }
  __syncthreads();
  uint4* out = reinterpret_cast<uint4*>(args.out);
  for (int i = begin * quads + threadIdx.x; i < (begin + count) * quads; i += kThreads) {
    out[i] = slots(mine)[set + i];
  }
  if (threadIdx.x == 0) mine->calls[peer] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Fetch<<<args.world, kThreads, 0, stream>>>(args);
}
