#include <allranks/flags.h>

// One block per source, between two meetings with the blocks of the same number at all peers: when
// all have entered the call, and when all have read. Lengths of the own features are loaded from
// all sources and added up by warps; values are loaded from the source into their places.

using namespace allranks;

constexpr int kThreads = 512, kWarps = kThreads / 32;

struct Control {
  std::uint32_t meetings[kMaxRanks];
  std::uint32_t reached[kMaxRanks][kMaxRanks];  // by block and peer
};

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[blockIdx.x][args.rank], meeting);
    WaitAcquireSys(&mine->reached[blockIdx.x][threadIdx.x], meeting);
  }
  __syncthreads();
}

// Of a whole warp: the sum of `count` lengths.
__device__ int Sum(const std::int32_t* lengths, int count) {
  int sum = 0;
  for (int i = threadIdx.x % 32; i < count; i += 32) sum += lengths[i];
  return __reduce_add_sync(~0u, sum);
}

__global__ void __launch_bounds__(kThreads) Pull(Args args) {
  __shared__ int sums[kThreads], before[kWarps];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings[blockIdx.x];
  const int source = blockIdx.x, world = args.world, per = args.per, batch = args.batch;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, own = args.rank * per * batch;
  Meet(args, meeting + 1);
  for (int e = warp; e < per * world; e += kWarps) {
    const int sum = Sum(args.lengths_peers[e % world] + own + e / world * batch, batch);
    if (lane == 0) sums[e] = sum;
  }
  const int share = (own + kWarps - 1) / kWarps, first = min(warp * share, own);
  const int part = Sum(args.lengths_peers[source] + first, min(share, own - first));
  if (lane == 0) before[warp] = part;
  __syncthreads();
  int from = 0, to = 0;
  for (int w = 0; w < kWarps; ++w) from += before[w];
  for (int e = 0; e < per * world; to += sums[e++]) {
    if (e % world != source) continue;
    for (int i = threadIdx.x; i < sums[e]; i += kThreads) {
      args.out_values[to + i] = args.values_peers[source][from + i];
    }
    from += sums[e];
    if (warp != e / world % kWarps) continue;
    int offset = to;
    for (int b = 0; b < batch; b += 32) {
      const int at = b + lane, list = own + e / world * batch + at;
      const int length = at < batch ? args.lengths_peers[source][list] : 0;
      int sum = length;
      for (int d = 1; d < 32; d *= 2) {
        const int left = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += left;
      }
      if (at < batch) {
        args.out_lengths[e * batch + at] = length;
        args.offsets[e * batch + at] = offset + sum - length;
      }
      offset += __shfl_sync(~0u, sum, 31);
    }
  }
  if (source == args.rank && threadIdx.x == 0) args.offsets[per * world * batch] = to;
  Meet(args, meeting + 2);
  if (threadIdx.x == 0) mine->meetings[blockIdx.x] = meeting + 2;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Pull<<<args.world, kThreads, 0, stream>>>(args);
}
