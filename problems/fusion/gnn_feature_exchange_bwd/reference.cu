#include <allranks/flags.h>

// Sources push: a rank's lists go into slots at their owners, in order. An owner need not be in the
// call for that. Block b sends part b of the whole list and adds up part b of the own rows. It
// waits for all blocks of all sources, goes through the ids that have come, and notes the entries
// of its rows in order. Then every warp takes a row and adds up its entries, some loads at a time.
//
// Slots and flags exist twice, for odd and even calls. A block that writes in call k + 2 has seen
// the flags of all blocks of all peers for call k + 1: they had read everything of call k then.

using namespace allranks;

constexpr int kThreads = 1024, kWarps = 32, kMaxBlocks = 8, kBatch = 4;
constexpr int kMost = 2048;  // entries that a block notes before it adds them up

// The beginning of every rank's scratch; slots of gradients follow, then slots of ids.
struct Control {
  std::uint64_t sent[2][kMaxRanks][kMaxBlocks];  // by source and its block: call, entries of all
  std::uint32_t calls[kMaxBlocks];               // that the block has completed
};

// The slots of a source at a rank.
struct Slots {
  float4* grads;
  std::int32_t* ids;
  __device__ Slots(const Args& args, int at, int odd, int source) {
    grads = reinterpret_cast<float4*>(args.scratch_peers[at] + sizeof(Control));
    ids = reinterpret_cast<std::int32_t*>(grads + 2 * args.world * args.most * args.quads);
    grads += (odd * args.world + source) * args.most * args.quads;
    ids += (odd * args.world + source) * args.most;
  }
};

// Lists one after the other, by rank: where they end, and which of them has entry i of all.
struct Lists {
  int ends[kMaxRanks];
  __device__ Lists(const int* counts, int world) {
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) ends[r] = r < world ? counts[r] : 0;
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) ends[r] += ends[r - 1];
  }
  __device__ int total() const { return ends[kMaxRanks - 1]; }
  __device__ int Find(int i, int* begin) const {
    int list = 0;
    *begin = 0;
#pragma unroll
    for (int r = 0; r + 1 < kMaxRanks; ++r) {
      if (i < ends[r]) continue;
      list = r + 1;
      *begin = ends[r];
    }
    return list;
  }
};

struct Entries {
  int row[kMost], slot[kMost];
};

// Adds the noted entries to the rows from `begin` to `end`, which are zero so far if `fresh`.
__device__ void Add(const Args& args, const Entries& entries, int size, int begin, int end,
                    const float4* grads, bool fresh) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, quads = args.quads;
  float4* out = reinterpret_cast<float4*>(args.out);
  for (int row = begin + warp; row < end; row += kWarps) {
    for (int v = lane; v - lane < quads; v += 32) {
      float4 sum = {};
      if (!fresh && v < quads) sum = out[row * quads + v];
      for (int base = 0; base < size; base += 32) {
        const bool here = base + lane < size && entries.row[base + lane] == row;
        std::uint32_t left = __ballot_sync(~0u, here);
        while (left != 0) {
          float4 g[kBatch] = {};
#pragma unroll
          for (int j = 0; j < kBatch; ++j) {
            if (left == 0) continue;
            const int slot = entries.slot[base + __ffs(left) - 1];
            left &= left - 1;
            if (v < quads) g[j] = grads[slot * quads + v];
          }
#pragma unroll
          for (int j = 0; j < kBatch; ++j) {  // adding 0 changes no value
            sum = {sum.x + g[j].x, sum.y + g[j].y, sum.z + g[j].z, sum.w + g[j].w};
          }
        }
      }
      if (v < quads) out[row * quads + v] = sum;
    }
  }
}

__global__ void __launch_bounds__(kThreads) PushAndAdd(Args args) {
  __shared__ int counts[kMaxRanks], of_warp[kWarps];
  __shared__ Entries entries;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int odd = call % 2, world = args.world, rank = args.rank, quads = args.quads;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  if (threadIdx.x < kMaxRanks) counts[threadIdx.x] = 0;
  const Lists going(args.counts, world);
  for (int i = first; i < going.total() * quads; i += stride) {
    const int entry = i / quads;
    int begin;
    const int owner = going.Find(entry, &begin);
    const Slots to(args, owner, odd, rank);
    to.grads[i - begin * quads] = reinterpret_cast<const float4*>(args.grads)[i];
    if (i % quads == 0) to.ids[entry - begin] = args.ids[entry];
  }
  __syncthreads();  //@pushed
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    const std::uint64_t word = std::uint64_t{call} << 32 | args.counts[threadIdx.x];
    StoreReleaseSys(&peer->sent[odd][rank][blockIdx.x], word);  //@tell
  }
  if (threadIdx.x < world * gridDim.x) {
    const std::uint64_t* sent = &mine->sent[odd][threadIdx.x / gridDim.x][threadIdx.x % gridDim.x];
    std::uint64_t word;
    do {
      word = LoadAcquireSys(sent);  //@look
    } while (word >> 32 != call);  //@come
    if (threadIdx.x % gridDim.x == 0) counts[threadIdx.x / gridDim.x] = static_cast<int>(word);
  }
  __syncthreads();  //@arrived
  const int per = (args.rows + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * per;
  const int end = min(begin + per, static_cast<int>(args.rows));
  const Slots slots(args, rank, odd, 0);
  const Lists came(counts, world);
  bool fresh = true;
  int size = 0;
  for (int base = 0; base < came.total(); base += kThreads) {
    const int i = base + threadIdx.x;
    int row = -1, slot = 0;
    if (i < came.total()) {
      int from;
      const int source = came.Find(i, &from);
      slot = source * args.most + i - from;
      row = slots.ids[slot];
    }
    const std::uint32_t all = __ballot_sync(~0u, row >= begin && row < end);
    if (lane == 0) of_warp[warp] = __popc(all);
    __syncthreads();  //@counted
    const int count = of_warp[lane], before = lane < warp ? count : 0;
    const int place = size + __reduce_add_sync(~0u, before) + __popc(all & ((1u << lane) - 1));
    size += __reduce_add_sync(~0u, count);
    if (row >= begin && row < end) {
      entries.row[place] = row;
      entries.slot[place] = slot;
    }
    __syncthreads();  //@listed
    if (size + kThreads > kMost) {
      Add(args, entries, size, begin, end, slots.grads, fresh);
      fresh = false;
      size = 0;
      __syncthreads();  // the entries have been read
    }
  }
  Add(args, entries, size, begin, end, slots.grads, fresh);
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t vectors = (args.most * args.quads + kThreads - 1) / kThreads;
  const std::int64_t rows = (args.rows + kWarps - 1) / kWarps;
  const std::int64_t needed = vectors > rows ? vectors : rows;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  PushAndAdd<<<blocks, kThreads, 0, stream>>>(args);
}
