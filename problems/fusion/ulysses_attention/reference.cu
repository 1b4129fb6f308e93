// Rank r attends for heads r * heads and on. Blocks belong to one of them. Each pushes the rows of
// that head of some peers, q, k and v, to their places there and tells the peer. When the rows of
// its own head have come from all, be the other heads here or not, it attends: a warp has a query,
// groups of eight lanes share out the keys, a lane has eight dimensions. Outputs go straight to the
// `out` of the rank that has the query's position.
//
// A peer's `out` is open when its rows of the call are here, and it cannot leave before our last
// flag, which stands behind our stores and our last look at its rows. Whoever leaves has the last
// flags of all blocks of all peers, so rows need one place only. Flags hold the number of the call.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 64, kRun = 8, kBatch = 4, kGroups = 32 / kRun;
constexpr int kWarps = 4, kThreads = 32 * kWarps, kMaxHeads = 8, kMaxBlocks = 64;
constexpr float kNothing = -1e30;  // the maximum of no keys

// The beginning of every rank's scratch; rows follow.
struct Control {
  std::uint32_t calls[kMaxBlocks];            // that this block has completed
  std::uint32_t sent[kMaxHeads][kMaxRanks];   // by source: the last call whose rows are here
  std::uint32_t done[kMaxBlocks][kMaxRanks];  // by peer: the last call whose outputs are here
};

// At rank `at`: rows of a head there by position, of q (0), k (1) or v (2).
__device__ uint4* Rows(const Args& args, int at, int head, int which) {
  const std::int64_t all = args.world * args.tokens * kRun;
  return reinterpret_cast<uint4*>(args.scratch_peers[at] + sizeof(Control)) +
         (head * 3 + which) * all;
}

__device__ void Unpack(const uint4& v, float (&to)[kRun]) {
  const std::uint32_t pairs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    to[i] = __uint_as_float(i % 2 == 0 ? pairs[i / 2] << 16 : pairs[i / 2] & 0xffff0000u);
  }
}

// A lane's share of one query's attention.
struct Part {
  float maximum = kNothing, sum = 0, output[kRun] = {};

  // To a batch of keys, `first` and every kGroups-th after it, before `end`.
  __device__ void Attend(const float (&query)[kRun], const uint4* keys, const uint4* values,
                         int first, int end) {
    uint4 k[kBatch], v[kBatch];
    float score[kBatch], highest = maximum, added = 0;
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {  // all on their way before the first is needed
      const int at = min(first + n * kGroups, end - 1) * kRun + threadIdx.x % kRun;
      k[n] = keys[at];
      v[n] = values[at];
    }
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      float elements[kRun], dot = 0;
      Unpack(k[n], elements);
#pragma unroll
      for (int i = 0; i < kRun; ++i) dot = fmaf(query[i], elements[i], dot);
      for (int d = kRun / 2; d > 0; d /= 2) dot += __shfl_xor_sync(~0u, dot, d);
      score[n] = first + n * kGroups < end ? dot / 8 : kNothing;
      highest = fmaxf(highest, score[n]);
    }
    const float fade = __expf(maximum - highest);
#pragma unroll
    for (float& one : output) one *= fade;
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      float elements[kRun];
      const float weight = score[n] == kNothing ? 0 : __expf(score[n] - highest);
      Unpack(v[n], elements);
#pragma unroll
      for (int i = 0; i < kRun; ++i) output[i] = fmaf(weight, elements[i], output[i]);
      added += weight;
    }
    sum = sum * fade + added;
    maximum = highest;
  }

  // With the part of the lane at a distance; both get the same.
  __device__ void Merge(int distance) {
    const float highest = fmaxf(maximum, __shfl_xor_sync(~0u, maximum, distance));
    const float scale = __expf(maximum - highest);
    sum *= scale;
    sum += __shfl_xor_sync(~0u, sum, distance);
#pragma unroll
    for (float& one : output) {
      one *= scale;
      one += __shfl_xor_sync(~0u, one, distance);
    }
    maximum = highest;
  }
};

__global__ void __launch_bounds__(kThreads) Ulysses(Args args) {
  const int rank = args.rank, world = args.world, tokens = static_cast<int>(args.tokens);
  const int heads = static_cast<int>(args.heads), head = blockIdx.x % heads;
  const int block = blockIdx.x / heads, blocks = gridDim.x / heads, all = world * tokens;
  const int thread = threadIdx.x, lane = thread % 32;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch

  for (int n = block; n < world; n += blocks) {
    const int to = (rank + n) % world;
    for (int i = thread; i < 3 * tokens * kRun; i += kThreads) {
      const int which = i / (tokens * kRun), at = i % (tokens * kRun);
      const void* from = which == 0 ? args.q : which == 1 ? args.k : args.v;
      const int row = at / kRun * world * heads + (to * heads + head);
      const uint4 vector = static_cast<const uint4*>(from)[row * kRun + i % kRun];
      Rows(args, to, head, which)[rank * tokens * kRun + at] = vector;
    }
  }
  __syncthreads();  //@pushed
  if (thread < world && thread % blocks == block) {
    const int to = (rank + thread) % world;
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[to]);
    StoreReleaseSys(&peer->sent[head][rank], call);  //@tell
  }
  if (thread < world) WaitAcquireSys(&mine->sent[head][thread], call);  //@wait
  __syncthreads();                                                      //@arrived

  const uint4 *keys = Rows(args, rank, head, 1), *values = Rows(args, rank, head, 2);
  for (int row = block * kWarps + thread / 32; row < all; row += blocks * kWarps) {
    float query[kRun];
    Unpack(Rows(args, rank, head, 0)[row * kRun + lane % kRun], query);
    Part part;
    for (int first = 0; first < all; first += kGroups * kBatch) {
      part.Attend(query, keys, values, first + lane / kRun, all);
    }
    for (int distance = kRun; distance < 32; distance *= 2) part.Merge(distance);
    if (lane >= 2 * kRun) continue;  // two groups suffice to write a row
    const int place = row % tokens * world * heads + rank * heads + head, half = lane / kRun;
    float o[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) o[i] = (half == 0 ? part.output[i] : part.output[4 + i]) / part.sum;
    float* out = args.out_peers[row / tokens] + place * kDim + lane % kRun * kRun + half * 4;
    *reinterpret_cast<float4*>(out) = {o[0], o[1], o[2], o[3]};
  }
  __syncthreads();                                  //@stored
  if (thread == 0) mine->calls[blockIdx.x] = call;  //@advance
  if (thread < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread]);
    StoreReleaseSys(&peer->done[blockIdx.x][rank], call);   //@publish
    WaitAcquireSys(&mine->done[blockIdx.x][thread], call);  //@left
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int heads = static_cast<int>(args.heads), most = kMaxBlocks / heads;
  const int needed = static_cast<int>((args.world * args.tokens + kWarps - 1) / kWarps);
  Ulysses<<<heads*(needed < most ? needed : most), kThreads, 0, stream>>>(args);
}
