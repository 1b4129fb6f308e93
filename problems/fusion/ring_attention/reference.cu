// Blocks belong to a head. Each pushes the head's keys and values to some of the peers, into slots
// by source: the second chunk only where a query is late enough to use it. It attends to the own
// keys while those of others are on their way, then to theirs. A block has four queries at a time,
// eight lanes each with eight dimensions, and its warps share out the keys in batches; at the end
// their parts are merged in shared memory.
//
// Slots exist twice, for odd and even calls. A rank that writes in call k + 2 has ended call k + 1,
// in which it has heard of every rank; they had ended call k then, and had read what it left.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 64, kRun = 8, kThreads = 256, kWarps = kThreads / 32, kBatch = 4;
constexpr int kQueries = 4, kMaxHeads = 4, kMaxBlocks = 64;
constexpr float kNothing = -1e30;  // the maximum of no keys

struct Control {
  std::uint32_t calls[kMaxBlocks];           // that this block has completed
  std::uint32_t sent[kMaxHeads][kMaxRanks];  // by source: the last call whose keys are here
};

__device__ int Position(const Args& args, int rank, int row) {
  const int chunk = static_cast<int>(args.chunk);
  return row < chunk ? rank * chunk + row : (2 * args.world - 1 - rank) * chunk + row - chunk;
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

  // To a batch of a source's rows, from `first` on and before `end`.
  __device__ void Attend(const Args& args, const float (&query)[kRun], int position, int source,
                         const uint4* keys, const uint4* values, int first, int end) {
    uint4 k[kBatch], v[kBatch];
    float score[kBatch], highest = maximum, added = 0;
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {  // all on their way before the first is needed
      const int at = min(first + n, end - 1) * kRun + threadIdx.x % kRun;
      k[n] = keys[at];
      v[n] = values[at];
    }
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      const int at = first + n;
      float elements[kRun], dot = 0;
      Unpack(k[n], elements);
#pragma unroll
      for (int i = 0; i < kRun; ++i) dot = fmaf(query[i], elements[i], dot);
      for (int d = kRun / 2; d > 0; d /= 2) dot += __shfl_xor_sync(~0u, dot, d);
      const bool counts = at < end && Position(args, source, at) <= position;
      score[n] = counts ? dot / 8 : kNothing;
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
};

__global__ void __launch_bounds__(kThreads) RingAttention(Args args) {
  __shared__ float outputs[kWarps][kQueries][kDim], maximum[kWarps][kQueries];
  __shared__ float sums[kWarps][kQueries];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int rank = args.rank, world = args.world, chunk = static_cast<int>(args.chunk);
  const int heads = static_cast<int>(args.heads), head = blockIdx.x % heads;
  const int block = blockIdx.x / heads, blocks = gridDim.x / heads, rows = 2 * chunk;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, size = rows * kRun;
  const uint4* keys = reinterpret_cast<const uint4*>(args.k) + head * size;
  const uint4* values = reinterpret_cast<const uint4*>(args.v) + head * size;
  // Keys (0) or values (1) of a source's head at rank `at`.
  const auto Slot = [&](int at, int source, int of_head, int which) {
    const int slot = ((call % 2 * world + source) * heads + of_head) * 2 + which;
    return reinterpret_cast<uint4*>(args.scratch_peers[at] + sizeof(Control)) + slot * size;
  };

  for (int to = block; to < world; to += blocks) {
    if (to == rank) continue;
    const int count = (to > rank ? chunk : 2 * chunk) * kRun;
    uint4* there = Slot(to, rank, head, 0);
    for (int i = threadIdx.x; i < count; i += kThreads) {
      const uint4 k = keys[i], v = values[i];
      there[i] = k;
      there[size + i] = v;
    }
  }
  __syncthreads();  //@pushed
  if (threadIdx.x < world && threadIdx.x % blocks == block && threadIdx.x != rank) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->sent[head][rank], call);  //@tell
  }

  for (int first = block * kQueries; first < rows; first += blocks * kQueries) {
    const int row = min(first + lane / kRun, rows - 1), position = Position(args, rank, row);
    float query[kRun];
    Unpack(reinterpret_cast<const uint4*>(args.q)[head * size + row * kRun + lane % kRun], query);
    Part part;
    // Warps take batches in turn; those after the last of the four queries count for none.
    const int latest = Position(args, rank, min(first + kQueries, rows) - 1);
    const int batches = (rows + kBatch - 1) / kBatch;
    for (int n = warp; n < batches; n += kWarps) {
      const int from = n * kBatch;
      if (Position(args, rank, from) > latest) break;
      part.Attend(args, query, position, rank, keys, values, from, rows);
    }
    if (first == block * kQueries) {
      if (threadIdx.x < world && threadIdx.x != rank) {
        WaitAcquireSys(&mine->sent[head][threadIdx.x], call);  //@wait
      }
      __syncthreads();  //@arrived
    }
    for (int n = warp; n < (world - 1) * batches; n += kWarps) {
      const int step = n / batches + 1, from = n % batches * kBatch;
      const int source = rank + step < world ? rank + step : rank + step - world;
      const int end = source < rank ? chunk : 2 * chunk;
      if (from >= end || Position(args, source, from) > latest) continue;
      part.Attend(args, query, position, source, Slot(rank, source, head, 0),
                  Slot(rank, source, head, 1), from, end);
    }
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      outputs[warp][lane / kRun][lane % kRun * kRun + i] = part.output[i];
    }
    if (lane % kRun == 0) maximum[warp][lane / kRun] = part.maximum;
    if (lane % kRun == 0) sums[warp][lane / kRun] = part.sum;
    __syncthreads();  //@stored
    const int one = threadIdx.x / kDim, d = threadIdx.x % kDim;
    if (one < kQueries && first + one < rows) {
      float highest = kNothing, sum = 0, output = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) highest = fmaxf(highest, maximum[w][one]);
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        const float factor = __expf(maximum[w][one] - highest);
        sum += factor * sums[w][one];
        output += factor * outputs[w][one][d];
      }
      args.out[(head * rows + first + one) * kDim + d] = output / sum;
    }
    __syncthreads();  //@merged
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int heads = static_cast<int>(args.heads);
  const int quads = static_cast<int>((2 * args.chunk + kQueries - 1) / kQueries);
  const int most = kMaxBlocks / heads;
  const int blocks = quads < most ? quads : most;
  RingAttention<<<heads * blocks, kThreads, 0, stream>>>(args);
}
