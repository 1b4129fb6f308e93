// A warp has a row, and no warp waits for another one of its device. What a rank says of a row are
// three floats: maximum, sum of exponentials relative to it, and the label's logit. Lane 3 r + part
// sends one of them to rank r, in a word that also holds the number of the call: who finds the
// number has the float. A warp sends for all its rows before it waits for any.
//
// Words are in two sets, used in turn. A rank leaves call k with words of call k of every peer, so
// no peer still reads words of call k - 1 when call k + 1 overwrites them.
#include <allranks/flags.h>

constexpr int kMaxBlocks = 64, kMaxWarps = 2, kWords = 3 * kMaxRanks, kHeld = 4;
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

// A lane's vectors of a row; the first ones are loaded once, all of them before one is needed.
struct Row {
  const float4* x;
  int vectors;
  float4 held[kHeld];

  __device__ Row(const float4* row, int count) : x(row), vectors(count) {
#pragma unroll
    for (int j = 0; j < kHeld; ++j) {
      const int i = threadIdx.x % 32 + 32 * j;
      if (i < vectors) held[j] = x[i];
    }
  }
  template <class F>
  __device__ void Each(F f) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < kHeld; ++j) {
      if (lane + 32 * j < vectors) f(held[j], lane + 32 * j);
    }
#pragma unroll 4
    for (int i = lane + 32 * kHeld; i < vectors; i += 32) f(x[i], i);
  }
};

__global__ void __launch_bounds__(32 * kMaxWarps) CrossEntropy(Args args) {
  const int lane = threadIdx.x % 32, vectors = static_cast<int>(args.vocab / 4);
  const int warp = threadIdx.x / 32 * gridDim.x + blockIdx.x, warps = blockDim.x / 32 * gridDim.x;
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch) + warp;
  const std::uint32_t call = *calls + 1;  //@epoch
  const std::int64_t set = (call & 1) * args.rows;
  const int part = lane % 3, peer = lane / 3;  // of this lane's word
  const float4* logits = reinterpret_cast<const float4*>(args.logits);

  for (std::int64_t row = warp; row < args.rows; row += warps) {
    const Row x(logits + row * vectors, vectors);
    const float chosen = args.logits[row * args.vocab + args.label[row]];
    float most = -INFINITY, sum = 0;
    x.Each([&](float4 v, int) { most = fmaxf(most, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w))); });
    most = WarpMax(most);
    x.Each([&](float4 v, int) {
      sum += expf(v.x - most) + expf(v.y - most) + (expf(v.z - most) + expf(v.w - most));
    });
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
    const Row x(logits + row * vectors, vectors);  // on its way while we wait
    const int label = args.label[row];
    std::uint64_t word = 0;
    if (peer < args.world) {
      const std::uint64_t* from = words + (set + row) * kWords + lane;
      word = Look(from);
      while (word >> 32 != call) word = Look(from);  //@again
    }
    const float value = __uint_as_float(static_cast<std::uint32_t>(word));
    // A rank's maximum, sum and logit are with three neighbouring lanes.
    const float most = WarpMax(part == 0 && peer < args.world ? value : -INFINITY);
    const float m = __shfl_up_sync(~0u, value, 1);
    const float total = WarpSum(part == 1 && peer < args.world ? value * expf(m - most) : 0);
    const float labels = WarpSum(part == 2 && peer < args.world ? value : 0);
    if (lane == 0) args.loss[row] = most + logf(total) - labels / args.world;
    const float inverse = 1 / total;
    x.Each([&](float4 v, int i) {
      reinterpret_cast<float4*>(args.grad)[row * vectors + i] = {
          Gradient(args, v.x, 4 * i, label, most, inverse),
          Gradient(args, v.y, 4 * i + 1, label, most, inverse),
          Gradient(args, v.z, 4 * i + 2, label, most, inverse),
          Gradient(args, v.w, 4 * i + 3, label, most, inverse)};
    });
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
