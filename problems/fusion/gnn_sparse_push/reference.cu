#include <allranks/flags.h>

// Block b has segment b of the list. It packs the pairs for each owner, in order, into slots there,
// and sends their number with the flag. Slots belong to a source and a segment, so that no block
// has to know of others before it sends, and no owner has to be in the call. An owner waits for all
// flags; the sums of their numbers are the places of the segments in its outputs.
//
// Slots and flags exist twice, for odd and even calls. A block that writes in call k + 2 has seen
// the flags of all blocks of all peers for call k + 1: they had read everything of call k then.

using namespace allranks;

constexpr int kThreads = 512, kWarps = kThreads / 32, kMaxBlocks = 8, kBatch = 4;

// The beginning of every rank's scratch; slots of values follow, then slots of ids.
struct Control {
  std::uint64_t sent[2][kMaxRanks][kMaxBlocks];  // by source and segment: call, pairs
  std::uint32_t calls[kMaxBlocks];               // that the block has completed
};

// Where the slots of a source begin at a rank.
struct Slots {
  uint4* values;
  std::uint64_t* ids;
  __device__ Slots(const Args& args, int at, int odd, int source) {
    values = reinterpret_cast<uint4*>(args.scratch_peers[at] + sizeof(Control));
    ids = reinterpret_cast<std::uint64_t*>(values + 2 * args.world * args.n * args.quads);
    values += (odd * args.world + source) * args.n * args.quads;
    ids += (odd * args.world + source) * args.n;
  }
};

// id % world, without a division of 64 bits.
__device__ int OwnerOf(std::uint64_t id, unsigned world) {
  const unsigned high = static_cast<unsigned>(id >> 32) % world;
  const unsigned low = static_cast<unsigned>(id) % world;
  return (high * (0xffffffffu % world + 1) + low) % world;
}

// The vectors at, at + stride, ... of `count`.
__device__ void Load(uint4 (&v)[kBatch], const uint4* from, int at, int stride, int count) {
#pragma unroll
  for (int j = 0; j < kBatch; ++j) {
    if (at + j * stride < count) v[j] = from[at + j * stride];
  }
}

__global__ void __launch_bounds__(kThreads) Push(Args args) {
  __shared__ int next[kMaxRanks], of_warp[kWarps][kMaxRanks];  // pairs by owner: so far, by warp
  __shared__ int owner[kThreads], place[kThreads];
  __shared__ int ends[kMaxRanks * kMaxBlocks];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int odd = call % 2, world = args.world, rank = args.rank, quads = args.quads;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int count = args.count[0], segment = (args.n + gridDim.x - 1) / gridDim.x;
  const int begin = blockIdx.x * segment, end = min(begin + segment, count);
  if (threadIdx.x < world) next[threadIdx.x] = 0;

  for (int base = begin; base < end; base += kThreads) {
    const int pairs = min(end - base, kThreads), i = base + threadIdx.x;
    const uint4* values = reinterpret_cast<const uint4*>(args.values) + base * quads;
    const std::uint64_t id = i < end ? args.ids[i] : 0;
    uint4 v[kBatch];
    Load(v, values, threadIdx.x, kThreads, pairs * quads);
    const int dest = i < end ? OwnerOf(id, world) : -1;
    int earlier = 0;
    for (int r = 0; r < world; ++r) {
      const std::uint32_t same = __ballot_sync(~0u, dest == r);
      if (lane == 0) of_warp[warp][r] = __popc(same);
      if (dest == r) earlier = __popc(same & ((1u << lane) - 1));
    }
    __syncthreads();  //@counted
    if (i < end) {
      int slot = begin + next[dest] + earlier;
      for (int w = 0; w < warp; ++w) slot += of_warp[w][dest];
      Slots(args, dest, odd, rank).ids[slot] = id;
      owner[threadIdx.x] = dest;
      place[threadIdx.x] = slot;
    }
    __syncthreads();  //@placed
    if (threadIdx.x < world) {
      int sum = next[threadIdx.x];
#pragma unroll 8
      for (int w = 0; w < (pairs + 31) / 32; ++w) sum += of_warp[w][threadIdx.x];
      next[threadIdx.x] = sum;
    }
    for (int at = threadIdx.x; at < pairs * quads; at += kBatch * kThreads) {
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        const int vector = at + j * kThreads, pair = vector / quads;
        if (vector >= pairs * quads) break;
        uint4* to = Slots(args, owner[pair], odd, rank).values + place[pair] * quads;
        to[vector % quads] = v[j];
      }
      Load(v, values, at + kBatch * kThreads, kThreads, pairs * quads);
    }
    __syncthreads();  //@again
  }
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    const std::uint64_t word = std::uint64_t{call} << 32 | next[threadIdx.x];
    StoreReleaseSys(&peer->sent[odd][rank][blockIdx.x], word);  //@tell
  }

  if (threadIdx.x < kMaxRanks * kMaxBlocks) {
    const int source = threadIdx.x / gridDim.x, segment = threadIdx.x % gridDim.x;
    std::uint64_t word = 0;
    if (source < world) {
      do {
        word = LoadAcquireSys(&mine->sent[odd][source][segment]);  //@look
      } while (word >> 32 != call);  //@come
    }
    int sum = static_cast<int>(word);
    for (int d = 1; d < 32; d *= 2) {
      const int before = __shfl_up_sync(~0u, sum, d);
      if (lane >= d) sum += before;
    }
    ends[threadIdx.x] = sum;  // of the segments of this warp
  }
  __syncthreads();  //@arrived
  // Where segment `entry` begins, counted from the first one of rank 0.
  const auto start_of = [&](int entry) {
    int start = entry % 32 > 0 ? ends[entry - 1] : 0;
    for (int last = 31; last < entry; last += 32) start += ends[last];
    return start;
  };
  if (blockIdx.x == 0 && threadIdx.x < world) {
    const int entry = threadIdx.x * gridDim.x;
    args.received[threadIdx.x] = start_of(entry + gridDim.x) - start_of(entry);
  }
  // A source's segment b is copied by some of the warps of block b.
  const int source = warp % world, part = warp / world * 32 + lane, parts = kWarps / world * 32;
  const int entry = source * gridDim.x + blockIdx.x, start = start_of(entry);
  const int pairs = start_of(entry + 1) - start, vectors = part < parts ? pairs * quads : 0;
  const Slots slots(args, rank, odd, source);
  const uint4* values = slots.values + begin * quads;
  uint4* out = reinterpret_cast<uint4*>(args.out_values) + start * quads;
  for (int at = part; at < vectors; at += kBatch * parts) {
    uint4 v[kBatch];
    Load(v, values, at, parts, vectors);
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (at + j * parts < vectors) out[at + j * parts] = v[j];
    }
  }
  for (int i = part; i < pairs && part < parts; i += parts) {
    args.out_ids[start + i] = slots.ids[begin + i];
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + 127) / 128;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  Push<<<blocks, kThreads, 0, stream>>>(args);
}
