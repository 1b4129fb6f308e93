#include <allranks/flags.h>
#include <allranks/numbers.h>

// The blocks of a rank find its largest number by an atomic maximum of words that carry the call;
// the last of them tells all ranks. Bytes stay in the own scratch, and owners read them from there.
// A rank leaves when all have read its bytes.
using namespace allranks;
constexpr int kMaxBlocks = 32, kThreads = 256, kControl = 4096;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t ready[kMaxBlocks][kMaxRanks], read[kMaxBlocks][kMaxRanks];
  unsigned long long own;  // call << 32 | bits
  std::uint32_t blocks;    // that have contributed to it, over all calls
  std::uint64_t maxima[kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) ReduceScatter(Args args) {
  __shared__ bool last;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x, t = threadIdx.x, world = args.world, words = args.m / 4;
  const std::uint32_t call = mine->calls[b] + 1;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t % world]);
  const int stride = gridDim.x * kThreads;
  const uint2* in = reinterpret_cast<const uint2*>(args.in);

  float amax = 0;
  for (int i = b * kThreads + t; i < words; i += stride) {
    for (int r = 0; r < world; ++r) {
      const uint2 v = in[r * words + i];
      amax = fmaxf(amax, fmaxf(fabsf(__uint_as_float(v.x << 16)),
                               fabsf(__uint_as_float(v.x & 0xffff0000u))));
      amax = fmaxf(amax, fmaxf(fabsf(__uint_as_float(v.y << 16)),
                               fabsf(__uint_as_float(v.y & 0xffff0000u))));
    }
  }
  for (int k = 16; k > 0; k /= 2) amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, k));
  if (t % 32 == 0) {
    atomicMax(&mine->own, static_cast<unsigned long long>(call) << 32 | __float_as_uint(amax));
  }
  __syncthreads();
  if (t == 0) last = FetchAddAcqRelGpu(&mine->blocks, 1u) == call * gridDim.x - 1;
  __syncthreads();
  if (last && t < world) {
    StoreRelaxedSys(&peer->maxima[args.rank], std::uint64_t{LoadRelaxedGpu(&mine->own)});
  }
  amax = 0;
  for (int r = 0; r < world; ++r) {
    std::uint64_t word;
    do {
      word = LoadRelaxedSys(&mine->maxima[r]);
    } while (word >> 32 != call);
    amax = fmaxf(amax, __uint_as_float(static_cast<std::uint32_t>(word)));
  }
  const std::uint32_t exponent = ((__float_as_uint(amax) + 0x1fffff) >> 23) - 8;
  const float scale = amax == 0 ? 0 : __uint_as_float(exponent << 23);
  const float inverse = amax == 0 ? 0 : __uint_as_float((254 - exponent) << 23);

  std::uint32_t* bytes = reinterpret_cast<std::uint32_t*>(args.scratch + kControl);
  for (int i = b * kThreads + t; i < words; i += stride) {
    for (int r = 0; r < world; ++r) {
      const uint2 v = in[r * words + i];
      const std::uint32_t low = TwoToE4m3(__uint_as_float(v.x << 16) * inverse,
                                          __uint_as_float(v.x & 0xffff0000u) * inverse);
      bytes[r * words + i] = low | TwoToE4m3(__uint_as_float(v.y << 16) * inverse,
                                             __uint_as_float(v.y & 0xffff0000u) * inverse)
                                       << 16;
    }
  }
  __syncthreads();
  if (t < world) {
    StoreReleaseSys(&peer->ready[b][args.rank], call);
    WaitAcquireSys(&mine->ready[b][t], call);
  }
  __syncthreads();
  for (int i = b * kThreads + t; i < words; i += stride) {
    std::uint32_t q[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= world) break;
      const std::uint8_t* from = args.scratch_peers[r] + kControl;
      q[r] = reinterpret_cast<const std::uint32_t*>(from)[args.rank * words + i];
    }
    float4 sum = {};
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= world) break;
      const float2 a = TwoFromE4m3(q[r]), c = TwoFromE4m3(q[r] >> 16);
      sum = {sum.x + a.x, sum.y + a.y, sum.z + c.x, sum.w + c.y};
    }
    reinterpret_cast<float4*>(args.out)[i] = {sum.x * scale, sum.y * scale, sum.z * scale,
                                              sum.w * scale};
  }
  __syncthreads();
  if (t < world) {
    StoreReleaseSys(&peer->read[b][args.rank], call);
    WaitAcquireSys(&mine->read[b][t], call);
  }
  if (t == 0) mine->calls[b] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.m / 4 + kThreads - 1) / kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  ReduceScatter<<<blocks, kThreads, 0, stream>>>(args);
}
