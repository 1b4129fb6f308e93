#include <allranks/flags.h>

// By reading, one warp per block of 128 numbers, four per lane. Blocks are dealt out in turn: block
// c belongs to rank c % world. Everyone keeps its integers in its own scratch; owners read them,
// and all read the owners' sums. Integers and sums lie in their own memory; the last meeting frees
// them.
using namespace allranks;
constexpr int kMaxBlocks = 32, kWarps = 8, kControl = 4096;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t reached[3][kMaxBlocks][kMaxRanks];
};

__device__ void Meet(const Args& args, int step, std::uint32_t call) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    StoreReleaseSys(&peer->reached[step][blockIdx.x][args.rank], call);
    WaitAcquireSys(&mine->reached[step][blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
}

// Four integers of a lane, as bytes of a word, and the warp's scale.
__device__ std::uint32_t Quantise(float4 x, float* scale) {
  float amax = fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w)));
  for (int k = 16; k > 0; k /= 2) amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, k));
  const std::uint32_t exponent = ((__float_as_uint(amax) + 0x1ffff) >> 23) - 6;
  const float inverse = amax == 0 ? 0 : __uint_as_float((254 - exponent) << 23);
  *scale = amax == 0 ? 0 : __uint_as_float(exponent << 23);
  return (__float2int_rn(x.x * inverse) & 255) | (__float2int_rn(x.y * inverse) & 255) << 8 |
         (__float2int_rn(x.z * inverse) & 255) << 16 | __float2int_rn(x.w * inverse) << 24;
}
__device__ float Get(std::uint32_t word, int k) { return static_cast<std::int8_t>(word >> 8 * k); }

__global__ void __launch_bounds__(32 * kWarps) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x, lane = threadIdx.x % 32, world = args.world;
  const std::uint32_t call = mine->calls[b] + 1;
  const int words = args.n / 4, cells = (words + 31) / 32, rounds = (cells + world - 1) / world;
  const int begin = b * kWarps + threadIdx.x / 32, stride = gridDim.x * kWarps;
  const auto integers = [&](int rank, int kind) {
    return reinterpret_cast<std::uint32_t*>(args.scratch_peers[rank] + kControl) + kind * words;
  };
  const auto scales = [&](int rank, int kind) {
    return reinterpret_cast<float*>(integers(rank, 2)) + kind * cells;
  };
  float scale;
  for (int j = begin; j < rounds; j += stride) {
    for (int cell = j * world; cell < min(cells, (j + 1) * world); ++cell) {
      const int i = 32 * cell + lane;
      const uint2 v = i < words ? reinterpret_cast<const uint2*>(args.in)[i] : uint2{};
      const std::uint32_t q =
          Quantise({__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xffff0000u),
                    __uint_as_float(v.y << 16), __uint_as_float(v.y & 0xffff0000u)},
                   &scale);
      if (i < words) integers(args.rank, 0)[i] = q;
      if (lane == 0) scales(args.rank, 0)[cell] = scale;
    }
  }
  Meet(args, 0, call);
  for (int j = begin; j < rounds && j * world + args.rank < cells; j += stride) {
    const int cell = j * world + args.rank, i = 32 * cell + lane;
    std::uint32_t q[kMaxRanks];
    float s[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      q[r] = r < world && i < words ? integers(r, 0)[i] : 0;
      s[r] = r < world ? scales(r, 0)[cell] : 0;
    }
    float4 x = {};
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      x = {x.x + Get(q[r], 0) * s[r], x.y + Get(q[r], 1) * s[r], x.z + Get(q[r], 2) * s[r],
           x.w + Get(q[r], 3) * s[r]};
    }
    const std::uint32_t sum = Quantise(x, &scale);
    if (i < words) integers(args.rank, 1)[i] = sum;
    if (lane == 0) scales(args.rank, 1)[cell] = scale;
  }
  Meet(args, 1, call);
  for (int j = begin; j < rounds; j += stride) {
    for (int r = 0; r < world && j * world + r < cells; ++r) {
      const int cell = j * world + r, i = 32 * cell + lane;
      if (i >= words) break;
      const std::uint32_t q = integers(r, 1)[i];
      const float s = scales(r, 1)[cell];
      reinterpret_cast<uint2*>(args.out)[i] = {
          __float_as_uint(Get(q, 0) * s) >> 16 | __float_as_uint(Get(q, 1) * s),
          __float_as_uint(Get(q, 2) * s) >> 16 | __float_as_uint(Get(q, 3) * s)};
    }
  }
  Meet(args, 2, call);
  if (threadIdx.x == 0) mine->calls[b] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int rounds = static_cast<int>((args.n + 128 * args.world - 1) / (128 * args.world));
  const int needed = (rounds + kWarps - 1) / kWarps;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, 32 * kWarps, 0, stream>>>(args);
}
