#include <allranks/flags.h>

// Block p exchanges with peer p. What a rank has for a peer is contiguous, lengths and values: they
// go into slots at the peer as they are, values as whole vectors of 16 bytes, so that a list may
// begin up to three words behind the begin of its slot; the flag says how many. The peer need not
// be in the call. Then the block waits for all sources, adds up lengths by feature and source, and
// from the sums before it knows where the lists of its source belong, feature by feature.
//
// Slots and flags exist twice, for odd and even calls. A block that writes in call k + 2 has seen
// the flags of all peers for call k + 1: their kernels of call k had ended then.

using namespace allranks;

constexpr int kThreads = 256, kWarps = kThreads / 32, kMaxPer = kThreads / kMaxRanks, kBatch = 4;

// The beginning of every rank's scratch; slots of values follow, then slots of lengths.
struct Control {
  std::uint64_t sent[2][kMaxRanks];  // by source: call, words before its first value
  std::uint32_t calls[kMaxRanks];    // that the block has completed
};

// The slots of a source at a rank.
struct Slots {
  uint4* values;
  std::int32_t* lengths;
  __device__ Slots(const Args& args, int at, int odd, int source) {
    const std::int64_t lists = args.per * args.batch, vectors = (lists * args.longest + 3) / 4 + 1;
    values = reinterpret_cast<uint4*>(args.scratch_peers[at] + sizeof(Control));
    lengths = reinterpret_cast<std::int32_t*>(values + 2 * args.world * vectors);
    values += (odd * args.world + source) * vectors;
    lengths += (odd * args.world + source) * lists;
  }
};

__device__ int WarpScan(int x) {
  for (int d = 1; d < 32; d *= 2) {
    const int before = __shfl_up_sync(~0u, x, d);
    if (threadIdx.x % 32 >= d) x += before;
  }
  return x;
}

// The sum of x over the threads before this one, and over all.
__device__ int SumBefore(int x, int* total) {
  __shared__ int of_warp[kWarps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, sum = WarpScan(x);
  __syncthreads();  // the sums of the last call have been read
  if (lane == 31) of_warp[warp] = sum;
  __syncthreads();
  const int others = lane < kWarps ? of_warp[lane] : 0;
  *total = __reduce_add_sync(~0u, others);
  return sum - x + __reduce_add_sync(~0u, lane < warp ? others : 0);
}

__global__ void __launch_bounds__(kThreads) Redistribute(Args args) {
  __shared__ int sums[kThreads], place[kThreads];  // by feature and source: words, where they go
  __shared__ int from[kMaxPer], shift;             // where a feature of this source begins
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int peer = blockIdx.x, rank = args.rank, world = args.world, per = args.per;
  const std::uint32_t call = mine->calls[peer] + 1;  //@epoch
  const int odd = call % 2, batch = args.batch, lists = per * batch, entries = per * world;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  const Slots to(args, peer, odd, rank);
  int before = 0, own = 0, start, count;
#pragma unroll 4
  for (int i = threadIdx.x; i < peer * lists; i += kThreads) before += args.lengths[i];
  for (int i = threadIdx.x; i < lists; i += kThreads) {
    const int length = args.lengths[peer * lists + i];
    to.lengths[i] = length;
    own += length;
  }
  SumBefore(before, &start);
  SumBefore(own, &count);
  const int first = start / 4, end = (start + count + 3) / 4;
  const std::int64_t words = std::int64_t{world} * lists * args.longest;
  for (int at = first + threadIdx.x; at < end; at += kThreads) {
    if (4 * std::int64_t{at} + 4 <= words) {
      to.values[at - first] = reinterpret_cast<const uint4*>(args.values)[at];
    } else {
      for (int i = 4 * at; i < words; ++i) {
        reinterpret_cast<std::uint32_t*>(to.values)[i - 4 * first] = args.values[i];
      }
    }
  }
  __syncthreads();  //@pushed
  if (threadIdx.x == 0) {
    Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
    StoreReleaseSys(&theirs->sent[odd][rank], std::uint64_t{call} << 32 | start % 4);  //@tell
  }
  if (threadIdx.x < world) {
    std::uint64_t word;
    do {
      word = LoadAcquireSys(&mine->sent[odd][threadIdx.x]);  //@look
    } while (word >> 32 != call);  //@come
    if (threadIdx.x == peer) shift = static_cast<int>(word);
  }
  __syncthreads();  //@arrived

  for (int e = warp; e < entries; e += kWarps) {
    const int f = e / world, source = e % world;
    const std::int32_t* lengths = Slots(args, rank, odd, source).lengths + f * batch;
    int sum = 0;
#pragma unroll 4
    for (int b = lane; b < batch; b += 32) sum += lengths[b];
    sum = __reduce_add_sync(~0u, sum);
    if (lane == 0) sums[e] = sum;
  }
  __syncthreads();  //@summed
  int total, all;
  place[threadIdx.x] = SumBefore(threadIdx.x < entries ? sums[threadIdx.x] : 0, &total);
  const int inner = SumBefore(threadIdx.x < per ? sums[threadIdx.x * world + peer] : 0, &all);
  if (threadIdx.x < per) from[threadIdx.x] = inner;
  if (peer == rank && threadIdx.x == 0) args.offsets[entries * batch] = total;
  __syncthreads();  //@placed

  // Several warps share a feature, if there are enough.
  const Slots slots(args, rank, odd, peer);
  const int team = max(kWarps / per, 1), part = warp % team * 32 + lane;
  for (int f = warp / team; f < per; f += kWarps / team) {
    const int e = f * world + peer;
    const std::uint32_t* list =
        reinterpret_cast<const std::uint32_t*>(slots.values) + shift + from[f];
    for (int at = part; at < sums[e]; at += kBatch * team * 32) {
      std::uint32_t v[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        if (at + j * team * 32 < sums[e]) v[j] = list[at + j * team * 32];
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        if (at + j * team * 32 < sums[e]) args.out_values[place[e] + at + j * team * 32] = v[j];
      }
    }
    if (part >= 32) continue;
    int offset = place[e];
    for (int b = lane; b - lane < batch; b += 32) {
      const int length = b < batch ? slots.lengths[f * batch + b] : 0, sum = WarpScan(length);
      if (b < batch) {
        args.out_lengths[e * batch + b] = length;
        args.offsets[e * batch + b] = offset + sum - length;
      }
      offset += __shfl_sync(~0u, sum, 31);
    }
  }
  if (threadIdx.x == 0) mine->calls[peer] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Redistribute<<<args.world, kThreads, 0, stream>>>(args);
}
