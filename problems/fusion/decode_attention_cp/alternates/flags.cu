// A block per head, a warp per position with two dimensions per lane. Parts are pushed by plain
// stores to the head's owner, and a released flag per head and source tells that one has come. Two
// sets of parts take turns.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 64, kThreads = 256, kWarps = kThreads / 32, kMaxHeads = 64, kRow = kDim + 2;

struct Control {
  std::uint32_t calls[kMaxHeads];            // that this block has completed
  std::uint32_t sent[kMaxHeads][kMaxRanks];  // by source: the last call whose part is here
};

__device__ float2 Two(std::uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
}

__global__ void __launch_bounds__(kThreads) Decode(Args args) {
  __shared__ float parts[kWarps][kRow];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int head = blockIdx.x, per = static_cast<int>(args.per), owner = head / per;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, used = args.used[0];
  const std::uint32_t call = mine->calls[head] + 1;
  const auto* k = reinterpret_cast<const std::uint32_t*>(args.k) + lane;
  const auto* v = reinterpret_cast<const std::uint32_t*>(args.v) + lane;
  const float2 q = Two(reinterpret_cast<const std::uint32_t*>(args.q)[head * 32 + lane]);
  float maximum = -1e30, sum = 0;
  float2 output = {0, 0};
#pragma unroll 4
  for (int i = warp; i < used; i += kWarps) {
    const float2 key = Two(k[i * 32]), value = Two(v[i * 32]);
    float dot = q.x * key.x + q.y * key.y;
    for (int d = 16; d > 0; d /= 2) dot += __shfl_xor_sync(~0u, dot, d);
    const float highest = fmaxf(maximum, dot / 8);
    const float fade = __expf(maximum - highest), weight = __expf(dot / 8 - highest);
    sum = sum * fade + weight;
    output = {output.x * fade + weight * value.x, output.y * fade + weight * value.y};
    maximum = highest;
  }
  parts[warp][2 * lane] = output.x;
  parts[warp][2 * lane + 1] = output.y;
  if (lane == 0) parts[warp][kDim] = maximum, parts[warp][kDim + 1] = sum;
  __syncthreads();
  const auto slot = [&](int source) {
    const std::int64_t row = (call % 2 * per + head % per) * args.world + source;
    return reinterpret_cast<float*>(args.scratch_peers[owner] + sizeof(Control)) + row * kRow;
  };
  if (threadIdx.x < kDim) {
    float highest = -1e30, all = 0, merged = 0;
    for (int w = 0; w < kWarps; ++w) highest = fmaxf(highest, parts[w][kDim]);
    for (int w = 0; w < kWarps; ++w) {
      const float factor = __expf(parts[w][kDim] - highest);
      all += factor * parts[w][kDim + 1];
      merged += factor * parts[w][threadIdx.x];
    }
    float* part = slot(args.rank);
    part[threadIdx.x] = merged;
    if (threadIdx.x == 0) part[kDim] = highest, part[kDim + 1] = all;
  }
  __syncthreads();
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[owner]);
  if (threadIdx.x == 0) StoreReleaseSys(&theirs->sent[head % per][args.rank], call);
  if (owner == args.rank) {
    if (threadIdx.x < args.world) WaitAcquireSys(&mine->sent[head % per][threadIdx.x], call);
    __syncthreads();
    if (threadIdx.x < kDim) {
      float highest = -1e30, all = 0, merged = 0;
      for (int r = 0; r < args.world; ++r) highest = fmaxf(highest, slot(r)[kDim]);
      for (int r = 0; r < args.world; ++r) {
        const float factor = __expf(slot(r)[kDim] - highest);
        all += factor * slot(r)[kDim + 1];
        merged += factor * slot(r)[threadIdx.x];
      }
      args.out[head % per * kDim + threadIdx.x] = all > 0 ? merged / all : 0;
    }
  }
  if (threadIdx.x == 0) mine->calls[head] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Decode<<<args.world * args.per, kThreads, 0, stream>>>(args);
}
