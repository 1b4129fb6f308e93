// A warp has a row, and no warp waits for another one of its device. What a rank says of a row are
// three floats: maximum, sum of exponentials relative to it, and the label's logit. Lane 3 r + part
// sends one of them to rank r, in a word that also holds the number of the call: who finds the
// number has the float. A warp sends for all its rows before it waits for any.
//
// Words are in two sets, used in turn. A rank leaves call k with words of call k of every peer, so
// no peer still reads words of call k - 1 when call k + 1 overwrites them.
#include <allranks/flags.h>

constexpr int kMaxBlocks = 64, kMaxWarps = 2, kWords = 3 * kMaxRanks;
constexpr int kBegin = 4096;  // of the words; before: a counter of calls per warp

__device__ float WarpMax(float x) {
  for (int d = 16; d > 0; d /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, d));
  return x;
}

__device__ float WarpSum(float x) {
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
  return x;
}

__device__ std::uint64_t Look(const std::uint64_t* from) { return allranks::LoadRelaxedSys(from); }

__device__ float Gradient(const Args& args, float x, int at, int label, float most, float inverse) {
  return expf(x - most) * inverse - (at == label ? 1.0f / args.world : 0);
}

__global__ void __launch_bounds__(32 * kMaxWarps) CrossEntropy(Args args) {
  const int lane = threadIdx.x % 32, vectors = static_cast<int>(args.vocab / 4);
  const int warp = threadIdx.x / 32 * gridDim.x + blockIdx.x, warps = blockDim.x / 32 * gridDim.x;
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch) + warp;
  const std::uint32_t call = *calls + 1;  //@epoch
  const std::int64_t set = (call & 1) * args.rows;
  const int part = lane % 3, peer = lane / 3;  // of this lane's word
  const float4* logits = reinterpret_cast<const float4*>(args.logits);

  for (std::int64_t row = warp; row < args.rows; row += warps) {
    const float4* x = logits + row * vectors;
    const float chosen = args.logits[row * args.vocab + args.label[row]];
    float most = -INFINITY, sum = 0;
#pragma unroll 4
    for (int i = lane; i < vectors; i += 32) {
      const float4 v = x[i];
      most = fmaxf(most, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    most = WarpMax(most);
#pragma unroll 4
    for (int i = lane; i < vectors; i += 32) {
      const float4 v = x[i];
      sum += expf(v.x - most) + expf(v.y - most) + (expf(v.z - most) + expf(v.w - most));
    }
    sum = WarpSum(sum);
    if (peer < args.world) {
      const float value = part == 0 ? most : part == 1 ? sum : chosen;
      const std::uint64_t word = static_cast<std::uint64_t>(call) << 32 | __float_as_uint(value);
      std::uint64_t* to = reinterpret_cast<std::uint64_t*>(args.scratch_peers[peer] + kBegin);
      to += (set + row) * kWords + args.rank * 3 + part;
      allranks::StoreRelaxedSys(to, word);  //@send
    }
  }
  const std::uint64_t* words = reinterpret_cast<std::uint64_t*>(args.scratch + kBegin);
  for (std::int64_t row = warp; row < args.rows; row += warps) {
    std::uint64_t word = 0;
    if (peer < args.world) {
      const std::uint64_t* from = words + (set + row) * kWords + lane;
      word = Look(from);
      while (word >> 32 != call) word = Look(from);  //@again
    }
    const float value = __uint_as_float(static_cast<std::uint32_t>(word));
    float most = -INFINITY, total = 0, labels = 0;
    for (int r = 0; r < args.world; ++r) most = fmaxf(most, __shfl_sync(~0u, value, 3 * r));
    for (int r = 0; r < args.world; ++r) {
      const float m = __shfl_sync(~0u, value, 3 * r), s = __shfl_sync(~0u, value, 3 * r + 1);
      total += s * expf(m - most);
      labels += __shfl_sync(~0u, value, 3 * r + 2);
    }
    if (lane == 0) args.loss[row] = most + logf(total) - labels / args.world;
    const float inverse = 1 / total;
    const int label = args.label[row];
#pragma unroll 4
    for (int i = lane; i < vectors; i += 32) {
      const float4 v = logits[row * vectors + i];
      reinterpret_cast<float4*>(args.grad)[row * vectors + i] = {
          Gradient(args, v.x, 4 * i, label, most, inverse),
          Gradient(args, v.y, 4 * i + 1, label, most, inverse),
          Gradient(args, v.z, 4 * i + 2, label, most, inverse),
          Gradient(args, v.w, 4 * i + 3, label, most, inverse)};
    }
  }
  __syncwarp();
  if (lane == 0) *calls = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t each = (args.rows + kMaxBlocks - 1) / kMaxBlocks;  // rows of a block
  const int blocks = static_cast<int>(args.rows < kMaxBlocks ? args.rows : kMaxBlocks);
  const int warps = static_cast<int>(each < kMaxWarps ? each : kMaxWarps);
  CrossEntropy<<<blocks, 32 * warps, 0, stream>>>(args);
}
