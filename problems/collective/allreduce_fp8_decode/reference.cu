#include <allranks/numbers.h>

// A thread quantises 8 numbers, so 16 neighbours share a scale, and stores the bytes to all ranks.
// There are no flags: a word of zero bits means "not here yet". Four bytes of +0 travel as four of
// -0, and so does the scale of a block of zeros. Everyone polls its own memory for all words.
//
// There are three sets of slots, for calls by turns. In call k a rank clears the set of call k - 1,
// which it has used up. No peer writes there before call k + 2, and it gets there only with this
// rank's words of call k + 1, which are sent by the kernel after the one that clears. Thread i of
// every rank has the same numbers, so only the threads i of all ranks depend on each other.
using namespace allranks;
constexpr int kMaxBlocks = 64, kThreads = 128, kSets = 3, kData = 1024;

__device__ void Send(uint2* to, uint2 v) {
  asm volatile("st.relaxed.sys.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(v.x), "r"(v.y)
               : "memory");  //@send
}
__device__ void Send(std::uint32_t* to, std::uint32_t word) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(word)
               : "memory");  //@send_scale
}
__device__ uint2 Receive(const uint2* from) {
  uint2 v;
  asm volatile("ld.relaxed.sys.global.v2.u32 {%0, %1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(from)
               : "memory");  //@receive
  return v;
}
__device__ std::uint32_t Receive(const std::uint32_t* from) {
  std::uint32_t word;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
  return word;
}

__device__ float Low(std::uint32_t word) { return __uint_as_float(word << 16); }
__device__ float High(std::uint32_t word) { return __uint_as_float(word & 0xffff0000u); }
__device__ std::uint32_t Quantise(std::uint32_t a, std::uint32_t b, float inverse) {
  const std::uint32_t word = TwoToE4m3(Low(a) * inverse, High(a) * inverse) |
                             TwoToE4m3(Low(b) * inverse, High(b) * inverse) << 16;
  return word == 0 ? 0x80808080u : word;
}
__device__ void Add(float4& sum, std::uint32_t word, float scale) {
  const float2 a = TwoFromE4m3(word), b = TwoFromE4m3(word >> 16);
  sum = {sum.x + a.x * scale, sum.y + a.y * scale, sum.z + b.x * scale, sum.w + b.y * scale};
}
__device__ std::uint32_t Round(float low, float high) {
  using Bfloat = Number<__nv_bfloat16>;
  return Bfloat::FromFloat(low) | static_cast<std::uint32_t>(Bfloat::FromFloat(high)) << 16;
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;
  const int world = args.world, vectors = args.n / 8, t = threadIdx.x;
  const int stride = gridDim.x * kThreads, set = call % kSets, used = (call + kSets - 1) % kSets;
  // Numbers i of rank `from` at rank `to`, and the scale of their block.
  const auto bytes = [&](int to, int set, int from, int i) {
    uint2* slots = reinterpret_cast<uint2*>(args.scratch_peers[to] + kData);
    return slots + (set * world + from) * vectors + i;
  };
  const auto scales = [&](int to, int set, int from, int i) {
    std::uint32_t* slots = reinterpret_cast<std::uint32_t*>(bytes(to, kSets, 0, 0));
    return slots + ((set * world + from) * vectors + i) / 16;
  };
  for (int first = blockIdx.x * kThreads; first < vectors; first += stride) {
    const int i = first + t;
    const bool valid = i < vectors;
    const uint4 v = valid ? reinterpret_cast<const uint4*>(args.in)[i] : uint4{};
    float amax = 0;
    for (const std::uint32_t word : {v.x, v.y, v.z, v.w}) {
      amax = fmaxf(amax, fmaxf(fabsf(Low(word)), fabsf(High(word))));
    }
    for (int lanes = 8; lanes > 0; lanes /= 2) {
      amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, lanes));
    }
    const float inverse = amax == 0 ? 0 : 448.0f / amax, scale = amax / 448.0f;
    const uint2 q = {Quantise(v.x, v.y, inverse), Quantise(v.z, v.w, inverse)};
    const std::uint32_t scale_word = scale == 0 ? 0x80000000u : __float_as_uint(scale);
    for (int step = 0; step < world && valid; ++step) {
      const int r = args.rank + step < world ? args.rank + step : args.rank + step - world;
      Send(bytes(r, set, args.rank, i), q);
      if (i % 16 == 0) Send(scales(r, set, args.rank, i), scale_word);
    }
    for (int r = 0; r < world && valid; ++r) {
      Send(bytes(args.rank, used, r, i), {0, 0});  //@clear
      if (i % 16 == 0) Send(scales(args.rank, used, r, i), 0);
    }
  }
  for (int i = blockIdx.x * kThreads + t; i < vectors; i += stride) {
    uint2 q[kMaxRanks];
    std::uint32_t s[kMaxRanks];
    bool absent = true;
    while (absent) {  //@wait
      absent = false;
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {  // all loads are on their way before one is looked at
        if (r >= world) break;
        q[r] = Receive(bytes(args.rank, set, r, i));
        s[r] = Receive(scales(args.rank, set, r, i));
      }
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (r < world) absent |= q[r].x == 0 || q[r].y == 0 || s[r] == 0;
      }
    }
    float4 low = {}, high = {};
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= world) break;  //@ranks
      const float scale = __uint_as_float(s[r]);
      Add(low, q[r].x, scale);
      Add(high, q[r].y, scale);
    }
    reinterpret_cast<uint4*>(args.out)[i] = {Round(low.x, low.y), Round(low.z, low.w),
                                             Round(high.x, high.y), Round(high.z, high.w)};
  }
  __syncthreads();                       //@all_read
  if (t == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.n / 8 + kThreads - 1) / kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
