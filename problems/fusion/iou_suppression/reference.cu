#include <allranks/flags.h>

// Every rank pushes its objects into slots at all peers, with a flag that says how many, and every
// rank finds all that are kept by itself. Blocks share the pairs: a warp makes the row of an
// object, the bits of those before it that overlap with it. The last block to write its rows
// decides. In a round all objects look at once: one with a kept object in its row is suppressed,
// one whose row has suppressed objects only is kept. The first undecided one is always decided.
//
// Slots and flags exist twice, for odd and even calls. A block that writes in call k + 2 has seen
// the flags of all peers for call k + 1: their kernels of call k had ended then. Rows and the
// ticket are of this rank alone, whose kernels follow each other.

using namespace allranks;

constexpr int kThreads = 256, kWarps = kThreads / 32, kBlocks = 16;
constexpr int kObjects = 256, kWords = kObjects / 32, kMaxQuads = 8;

// The beginning of every rank's scratch; slots of masks follow, then slots of scores.
struct alignas(16) Control {
  std::uint32_t rows[kObjects][kWords];  // by object: those before it that overlap with it
  std::uint64_t sent[2][kMaxRanks];      // by source: call, objects
  std::uint32_t calls[kBlocks];          // that the block has completed
  std::uint32_t written;                 // blocks that have written their rows, in all calls
};

// The slots of a source at a rank.
struct Slots {
  uint4* masks;
  std::int32_t* scores;
  __device__ Slots(const Args& args, int at, int odd, int source) {
    masks = reinterpret_cast<uint4*>(args.scratch_peers[at] + sizeof(Control));
    scores = reinterpret_cast<std::int32_t*>(masks + 2 * args.world * args.n * args.quads);
    masks += (odd * args.world + source) * args.n * args.quads;
    scores += (odd * args.world + source) * args.n;
  }
};

__device__ int Bits(uint4 v) { return __popc(v.x) + __popc(v.y) + __popc(v.z) + __popc(v.w); }

__global__ void __launch_bounds__(kThreads) Suppress(Args args) {
  __shared__ uint4 masks[kObjects * kMaxQuads];
  __shared__ int counts[kMaxRanks], scores[kObjects], bits[kObjects];
  __shared__ std::uint32_t kept[kWords], undecided[kWords], ticket;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int odd = call % 2, world = args.world, rank = args.rank, quads = args.quads;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  if (blockIdx.x < world) {
    const std::uint64_t count = args.count[0];
    const Slots to(args, blockIdx.x, odd, rank);  // rows without meaning go there, too
    for (int i = threadIdx.x; i < args.n * quads; i += kThreads) {
      to.masks[i] = reinterpret_cast<const uint4*>(args.masks)[i];
    }
    if (threadIdx.x < args.n) to.scores[threadIdx.x] = args.scores[threadIdx.x];
    __syncthreads();  //@pushed
    if (threadIdx.x == 0) {
      Control* peer = reinterpret_cast<Control*>(args.scratch_peers[blockIdx.x]);
      StoreReleaseSys(&peer->sent[odd][rank], std::uint64_t{call} << 32 | count);  //@tell
    }
  }
  if (threadIdx.x < world) {
    std::uint64_t word;
    do {
      word = LoadAcquireSys(&mine->sent[odd][threadIdx.x]);  //@look
    } while (word >> 32 != call);  //@come
    counts[threadIdx.x] = static_cast<int>(word);
  } else if (threadIdx.x < kMaxRanks) {
    counts[threadIdx.x] = 0;
  }
  __syncthreads();  //@arrived

  // Thread t has object t of all, which is object `at` of rank `source`.
  int objects = 0, source = 0, at = threadIdx.x, first = 0;
#pragma unroll
  for (int s = 0; s < kMaxRanks; ++s) {
    if (s == rank) first = objects;
    objects += counts[s];
    if (threadIdx.x < objects) continue;
    source = s + 1;
    at = threadIdx.x - objects;
  }
  if (threadIdx.x < objects) {
    const Slots slots(args, rank, odd, source);
    int sum = 0;
#pragma unroll 2
    for (int q = 0; q < quads; ++q) {
      const uint4 v = slots.masks[at * quads + q];
      masks[q * kObjects + threadIdx.x] = v;
      sum += Bits(v);
    }
    scores[threadIdx.x] = slots.scores[at];
    bits[threadIdx.x] = sum;
  }
  __syncthreads();  //@loaded

  for (int j = blockIdx.x * kWarps + warp; j < objects; j += kBlocks * kWarps) {
    int common[kWords] = {};  // of object j and those of this lane
    for (int q = 0; q < quads; ++q) {
      const uint4 b = masks[q * kObjects + j];
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        if (w * 32 + lane >= objects) continue;
        const uint4 a = masks[q * kObjects + w * 32 + lane];
        common[w] += Bits(make_uint4(a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w));
      }
    }
    std::uint32_t row = 0;  // lane w has word w
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      const int i = w * 32 + lane;
      bool before = false;
      if (i < objects && 7 * common[w] > 2 * (bits[i] + bits[j])) {
        before = scores[i] > scores[j] || (scores[i] == scores[j] && i < j);
      }
      const std::uint32_t word = __ballot_sync(~0u, before);
      if (lane == w) row = word;
    }
    if (lane < kWords) mine->rows[j][lane] = row;
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
  __syncthreads();                                       //@written
  if (threadIdx.x == 0) ticket = FetchAddAcqRelGpu(&mine->written, 1u);
  if (threadIdx.x < kWords) {
    kept[threadIdx.x] = 0;
    undecided[threadIdx.x] = ~0u;
  }
  __syncthreads();  //@drawn
  if (ticket + 1 != call * kBlocks) return;

  std::uint32_t row[kWords] = {};
  bool open = threadIdx.x < objects, is_kept = false;
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
    if (open) row[w] = mine->rows[threadIdx.x][w];
  }
  while (__syncthreads_or(open)) {
    std::uint32_t beaten = 0, waits = 0;
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      const std::uint32_t before = row[w];
      beaten |= before & kept[w];
      waits |= before & undecided[w];
    }
    if (open && beaten == 0 && waits == 0) is_kept = true;
    if (beaten != 0 || waits == 0) open = false;
    const std::uint32_t now_kept = __ballot_sync(~0u, is_kept);
    const std::uint32_t still_open = __ballot_sync(~0u, open);
    __syncthreads();  //@round
    if (lane == 0) {
      kept[warp] = now_kept;
      undecided[warp] = still_open;
    }
  }
  if (threadIdx.x >= first && threadIdx.x < first + counts[rank]) {
    args.keep[threadIdx.x - first] = is_kept;
  }
  const int all = __syncthreads_count(is_kept);
  if (threadIdx.x == 0) args.total[0] = all;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Suppress<<<kBlocks, kThreads, 0, stream>>>(args);
}
