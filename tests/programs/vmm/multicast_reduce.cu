// A multicast object over four devices: reducing loads of every operation on integers, floats, halves
// and bfloats against host arithmetic (fp8 has its test in tests/node/atomic_test.cpp), stores and
// reductions, plain stores and copies to its addresses, several bindings, and errors.
// run: --devices 4
// finds: out_of_bounds not_mapped api_error
// nvcc: -arch=sm_90
// faults: accesses that a multicast object does not permit
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "handles.h"

namespace {

constexpr int kDevices = 4;

// --- the instructions --------------------------------------------------------------------------

#define LOAD32(name, form)                                                              \
  struct name {                                                                         \
    using Word = uint32_t;                                                              \
    __device__ static Word Load(const Word* p) {                                        \
      Word v;                                                                           \
      asm volatile("multimem.ld_reduce." form " %0, [%1];" : "=r"(v) : "l"(p) : "memory"); \
      return v;                                                                         \
    }                                                                                   \
  };
#define LOAD64(name, form)                                                              \
  struct name {                                                                         \
    using Word = uint64_t;                                                              \
    __device__ static Word Load(const Word* p) {                                        \
      Word v;                                                                           \
      asm volatile("multimem.ld_reduce." form " %0, [%1];" : "=l"(v) : "l"(p) : "memory"); \
      return v;                                                                         \
    }                                                                                   \
  };
LOAD32(AddU32, "relaxed.sys.global.add.u32")
LOAD32(MinU32, "weak.global.min.u32")
LOAD32(MaxU32, "acquire.gpu.global.max.u32")
LOAD32(MinS32, "relaxed.sys.global.min.s32")
LOAD32(MaxS32, "relaxed.sys.global.max.s32")
LOAD32(AndB32, "relaxed.sys.global.and.b32")
LOAD32(OrB32, "relaxed.sys.global.or.b32")
LOAD32(XorB32, "relaxed.sys.global.xor.b32")
LOAD64(AddU64, "relaxed.sys.global.add.u64")
LOAD64(MinU64, "relaxed.sys.global.min.u64")
LOAD64(MaxU64, "relaxed.sys.global.max.u64")
LOAD64(AndB64, "relaxed.sys.global.and.b64")
LOAD64(OrB64, "relaxed.sys.global.or.b64")
LOAD64(MaxS64, "relaxed.sys.global.max.s64")
LOAD64(MinS64, "relaxed.sys.global.min.s64")
LOAD64(XorB64, "relaxed.sys.global.xor.b64")
LOAD32(AddF32, "relaxed.sys.global.add.f32")
LOAD64(AddF64, "relaxed.sys.global.add.f64")
LOAD32(AddF16x2, "relaxed.sys.global.add.f16x2")
LOAD32(AddF16x2Wide, "relaxed.sys.global.add.acc::f32.f16x2")
LOAD32(MinF16x2, "relaxed.sys.global.min.f16x2")
LOAD32(MaxF16x2, "relaxed.sys.global.max.f16x2")
LOAD32(AddBf16x2, "relaxed.sys.global.add.bf16x2")
LOAD32(AddBf16x2Wide, "relaxed.sys.global.add.acc::f32.bf16x2")
LOAD32(MinBf16x2, "relaxed.sys.global.min.bf16x2")
LOAD32(MaxBf16x2, "relaxed.sys.global.max.bf16x2")

template <class I>
__global__ void Reduce(const typename I::Word* all, typename I::Word* out, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = I::Load(all + i);
}

__global__ void Vectors(const float4* all, float4* out) {
  const float4* f = all + threadIdx.x;
  float4 v;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(f)
               : "memory");
  out[threadIdx.x] = v;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v2.f32 {%0,%1}, [%2];"
               : "=f"(v.x), "=f"(v.y)
               : "l"(f)
               : "memory");
  out[32 + threadIdx.x] = make_float4(v.x, v.y, 0, 0);
}
__global__ void HalfVectors(const uint4* all, uint4* out) {
  uint4 v;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f16x2 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(all + threadIdx.x)
               : "memory");
  out[threadIdx.x] = v;
}
__global__ void BfloatVectors(const uint4* all, uint4* out) {
  uint4 v;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(all + threadIdx.x)
               : "memory");
  out[threadIdx.x] = v;
}

// multimem.st and multimem.red; one word per thread.
__global__ void Store(uint32_t* all, uint32_t value) {
  asm volatile("multimem.st.relaxed.sys.global.u32 [%0], %1;" ::"l"(all + threadIdx.x),
               "r"(value + threadIdx.x)
               : "memory");
}
__global__ void Red(uint32_t* all) {
  asm volatile("multimem.red.relaxed.sys.global.add.u32 [%0], %1;" ::"l"(all + threadIdx.x),
               "r"(threadIdx.x + 1)
               : "memory");
}
__global__ void RedFloats(float* all) {
  float* p = all + 4 * threadIdx.x;
  const float v = threadIdx.x;
  asm volatile("multimem.red.relaxed.sys.global.add.v4.f32 [%0], {%1,%1,%1,%1};" ::"l"(p), "f"(v)
               : "memory");
  asm volatile("multimem.red.release.sys.global.add.f32 [%0], %1;" ::"l"(p), "f"(1.0f) : "memory");
}
__global__ void RedHalves(uint32_t* all, uint32_t ones) {
  asm volatile("multimem.red.relaxed.sys.global.add.f16x2 [%0], %1;" ::"l"(all + threadIdx.x),
               "r"(ones)
               : "memory");
}
__global__ void Plain(uint32_t* all) {
  all[threadIdx.x] = 100 + threadIdx.x;
  __syncthreads();
  asm volatile("red.global.add.u32 [%0], 1;" ::"l"(all + threadIdx.x) : "memory");
}
__global__ void PlainLoad(const uint32_t* all, uint32_t* out) { *out = *all; }

// --- checks ------------------------------------------------------------------------------------

uint64_t Bits(int device, int i) {
  uint64_t x = (uint64_t(device) * 1000003 + i + 1) * 0x9e3779b97f4a7c15;
  x ^= x >> 31;
  return x * 0xbf58476d1ce4e5b9;
}

// Every device runs I over words made by `make` and must find what `fold` makes of them.
template <class I, class Make, class Fold>
void Check(const char* name, MulticastBuffer<char>& buffer, Make make, Fold fold) {
  using Word = typename I::Word;
  constexpr int kCount = 200;
  std::vector<Word> words[kDevices], back(kCount);
  for (int d = 0; d < kDevices; ++d) {
    for (int i = 0; i < kCount; ++i) words[d].push_back(make(d, i));
    CUDA_CHECK(cudaMemcpy(buffer.on[d], words[d].data(), kCount * sizeof(Word), cudaMemcpyDefault));
  }
  for (int d = 0; d < kDevices; d += 3) {
    Word* out = ZeroedOn<Word>(d, kCount);
    Reduce<I><<<1, 64>>>(reinterpret_cast<Word*>(buffer.everywhere), out, kCount);
    CUDA_CHECK(cudaMemcpy(back.data(), out, kCount * sizeof(Word), cudaMemcpyDefault));
    for (int i = 0; i < kCount; ++i) {
      const Word expected = fold(words[0][i], words[1][i], words[2][i], words[3][i]);
      REQUIRE(back[i] == expected, "%s, device %d, word %d: %llx, expected %llx", name, d, i,
              (unsigned long long)back[i], (unsigned long long)expected);
    }
    CUDA_CHECK(cudaFree(out));
  }
}

template <class T, class Word>
T As(Word word) {
  T value;
  static_assert(sizeof value == sizeof word, "");
  memcpy(static_cast<void*>(&value), &word, sizeof value);
  return value;
}
template <class T, class F>
auto Folded(F f) {
  return [f](auto a, auto b, auto c, auto d) {
    using Word = decltype(a);
    return As<Word>(static_cast<T>(f(f(f(As<T>(a), As<T>(b)), As<T>(c)), As<T>(d))));
  };
}
// Both halves of a word, each by `f` on floats and rounded at every step.
template <class H, class F>
auto FoldedHalves(F f) {
  return [f](uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    uint32_t result = 0;
    for (int half = 0; half < 2; ++half) {
      const auto get = [&](uint32_t word) { return float(As<H>(uint16_t(word >> 16 * half))); };
      const H one(f(get(a), get(b)));
      const H two(f(float(one), get(c)));
      const H sum(f(float(two), get(d)));
      result |= uint32_t(As<uint16_t>(sum)) << 16 * half;
    }
    return result;
  };
}

template <class H>
uint32_t TwoSmall(int d, int i) {
  // Sums of these are exact in both formats, so that no order of additions matters.
  const float low = float((i * 5 + d) % 16 - 8), high = float((i * 3 + 2 * d) % 16) / 4;
  return As<uint16_t>(H(low)) | uint32_t(As<uint16_t>(H(high))) << 16;
}

const auto kAdd = [](auto a, auto b) { return a + b; };
const auto kMin = [](auto a, auto b) { return b < a ? b : a; };
const auto kMax = [](auto a, auto b) { return a < b ? b : a; };

void Loads(MulticastBuffer<char>& buffer) {
  const auto random32 = [](int d, int i) { return uint32_t(Bits(d, i) >> 7); };
  const auto random64 = [](int d, int i) { return Bits(d, i); };
  Check<AddU32>("add.u32", buffer, random32, Folded<uint32_t>(kAdd));
  Check<MinU32>("min.u32", buffer, random32, Folded<uint32_t>(kMin));
  Check<MaxU32>("max.u32", buffer, random32, Folded<uint32_t>(kMax));
  Check<MinS32>("min.s32", buffer, random32, Folded<int32_t>(kMin));
  Check<MaxS32>("max.s32", buffer, random32, Folded<int32_t>(kMax));
  Check<AndB32>("and.b32", buffer, [](int d, int i) { return uint32_t(Bits(d, i) | Bits(i, d)); },
                Folded<uint32_t>([](auto a, auto b) { return a & b; }));
  Check<OrB32>("or.b32", buffer, [](int d, int i) { return uint32_t(Bits(d, i) & Bits(i, d)); },
               Folded<uint32_t>([](auto a, auto b) { return a | b; }));
  Check<XorB32>("xor.b32", buffer, random32,
                Folded<uint32_t>([](auto a, auto b) { return a ^ b; }));
  Check<AddU64>("add.u64", buffer, random64, Folded<uint64_t>(kAdd));
  Check<MinU64>("min.u64", buffer, random64, Folded<uint64_t>(kMin));
  Check<MaxU64>("max.u64", buffer, random64, Folded<uint64_t>(kMax));
  Check<AndB64>("and.b64", buffer, [](int d, int i) { return Bits(d, i) | Bits(i, d); },
                Folded<uint64_t>([](auto a, auto b) { return a & b; }));
  Check<OrB64>("or.b64", buffer, [](int d, int i) { return Bits(d, i) & Bits(i, d); },
               Folded<uint64_t>([](auto a, auto b) { return a | b; }));
  Check<MinS64>("min.s64", buffer, random64, Folded<int64_t>(kMin));
  Check<MaxS64>("max.s64", buffer, random64, Folded<int64_t>(kMax));
  Check<XorB64>("xor.b64", buffer, random64,
                Folded<uint64_t>([](auto a, auto b) { return a ^ b; }));
  Check<AddF32>("add.f32", buffer,
                [](int d, int i) { return As<uint32_t>(float(i * 8 + d) / 16); },
                Folded<float>(kAdd));
  Check<AddF64>("add.f64", buffer,
                [](int d, int i) { return As<uint64_t>(double(i * 1000 + d) / 64); },
                Folded<double>(kAdd));
  Check<AddF16x2>("add.f16x2", buffer, TwoSmall<__half>, FoldedHalves<__half>(kAdd));
  Check<AddF16x2Wide>("add.acc::f32.f16x2", buffer, TwoSmall<__half>, FoldedHalves<__half>(kAdd));
  Check<MinF16x2>("min.f16x2", buffer, TwoSmall<__half>, FoldedHalves<__half>(kMin));
  Check<MaxF16x2>("max.f16x2", buffer, TwoSmall<__half>, FoldedHalves<__half>(kMax));
  Check<AddBf16x2>("add.bf16x2", buffer, TwoSmall<__nv_bfloat16>,
                   FoldedHalves<__nv_bfloat16>(kAdd));
  Check<AddBf16x2Wide>("add.acc::f32.bf16x2", buffer, TwoSmall<__nv_bfloat16>,
                       FoldedHalves<__nv_bfloat16>(kAdd));
  Check<MinBf16x2>("min.bf16x2", buffer, TwoSmall<__nv_bfloat16>,
                   FoldedHalves<__nv_bfloat16>(kMin));
  Check<MaxBf16x2>("max.bf16x2", buffer, TwoSmall<__nv_bfloat16>,
                   FoldedHalves<__nv_bfloat16>(kMax));
  // 2048 + 1 + 1 + 1: in f32 this is 2051, which f16 rounds to 2052; by steps of f16 it would stay
  // 2048.
  const auto both = [](float value) {
    const uint16_t h = As<uint16_t>(__half(value));
    return uint32_t(h) | uint32_t(h) << 16;
  };
  Check<AddF16x2Wide>("acc::f32", buffer,
                      [&](int d, int) { return both(d == 0 ? 2048.0f : 1.0f); },
                      [&](auto...) { return both(2052.0f); });
}

void VectorLoads(MulticastBuffer<char>& buffer) {
  for (int d = 0; d < kDevices; ++d) {
    std::vector<float> host(128);
    for (int i = 0; i < 128; ++i) host[i] = float(i + 1000 * d);
    CUDA_CHECK(cudaMemcpy(buffer.on[d], host.data(), 512, cudaMemcpyDefault));
  }
  float4* out = ZeroedOn<float4>(2, 64);
  Vectors<<<1, 32>>>(reinterpret_cast<float4*>(buffer.everywhere), out);
  std::vector<float> back(256);
  CUDA_CHECK(cudaMemcpy(back.data(), out, 1024, cudaMemcpyDefault));
  for (int i = 0; i < 128; ++i) {
    REQUIRE(back[i] == 4.0f * i + 6000, "v4.f32 %d: %f", i, back[i]);
    const float expected = i % 4 < 2 ? 4.0f * i + 6000 : 0;
    REQUIRE(back[128 + i] == expected, "v2.f32 %d: %f", i, back[128 + i]);
  }
  const auto halves = [&](auto kernel, auto zero, const char* name) {
    using H = decltype(zero);
    for (int d = 0; d < kDevices; ++d) {
      std::vector<uint16_t> host(256);
      for (int i = 0; i < 256; ++i) host[i] = As<uint16_t>(H(float((i + d) % 8)));
      CUDA_CHECK(cudaMemcpy(buffer.on[d], host.data(), 512, cudaMemcpyDefault));
    }
    kernel<<<1, 32>>>(reinterpret_cast<uint4*>(buffer.everywhere), reinterpret_cast<uint4*>(out));
    std::vector<uint16_t> sums(256);
    CUDA_CHECK(cudaMemcpy(sums.data(), out, 512, cudaMemcpyDefault));
    for (int i = 0; i < 256; ++i) {
      const float expected = float(i % 8 + (i + 1) % 8 + (i + 2) % 8 + (i + 3) % 8);
      REQUIRE(float(As<H>(sums[i])) == expected, "%s %d", name, i);
    }
  };
  CUDA_CHECK(cudaSetDevice(2));
  halves(HalfVectors, __half{}, "v4.f16x2");
  halves(BfloatVectors, __nv_bfloat16{}, "v4.bf16x2");
  CUDA_CHECK(cudaFree(out));
}

// After `what` each device's copy must be expected(i).
template <class T, class F>
void Everywhere(const char* what, const MulticastBuffer<char>& buffer, int count, F expected) {
  for (int d = 0; d < kDevices; ++d) {
    std::vector<T> back(count);
    CUDA_CHECK(cudaMemcpy(back.data(), buffer.on[d], count * sizeof(T), cudaMemcpyDefault));
    for (int i = 0; i < count; ++i)
      REQUIRE(back[i] == expected(i), "%s: device %d, element %d", what, d, i);
  }
}

void Stores(MulticastBuffer<char>& buffer) {
  auto* words = reinterpret_cast<uint32_t*>(buffer.everywhere);
  CUDA_CHECK(cudaSetDevice(1));
  Store<<<1, 128>>>(words, 7);
  CUDA_CHECK(cudaDeviceSynchronize());
  Everywhere<uint32_t>("multimem.st", buffer, 128, [](int i) { return uint32_t(7 + i); });
  for (int d = 0; d < kDevices; ++d) {
    CUDA_CHECK(cudaSetDevice(d));
    Red<<<2, 128>>>(words);
  }
  for (int d = 0; d < kDevices; ++d) {
    CUDA_CHECK(cudaSetDevice(d));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  Everywhere<uint32_t>("multimem.red", buffer, 128,
                       [](int i) { return uint32_t(7 + i + 8 * (i + 1)); });
  for (int d = 0; d < kDevices; ++d) CUDA_CHECK(cudaMemset(buffer.on[d], 0, 4096));
  RedFloats<<<1, 32>>>(reinterpret_cast<float*>(words));
  CUDA_CHECK(cudaDeviceSynchronize());
  Everywhere<float>("multimem.red.v4.f32", buffer, 128,
                    [](int i) { return float(i / 4) + (i % 4 == 0 ? 1 : 0); });
  for (int d = 0; d < kDevices; ++d) CUDA_CHECK(cudaMemset(buffer.on[d], 0, 4096));
  const uint16_t one = As<uint16_t>(__half(1.0f)), three = As<uint16_t>(__half(3.0f));
  RedHalves<<<3, 32>>>(words, one | uint32_t(one) << 16);
  CUDA_CHECK(cudaDeviceSynchronize());
  Everywhere<uint16_t>("multimem.red.f16x2", buffer, 64, [&](int) { return three; });
  // The switch copies what it gets: plain stores, reductions, the copy engines' writes, sets.
  Plain<<<1, 64>>>(words);
  CUDA_CHECK(cudaDeviceSynchronize());
  Everywhere<uint32_t>("st and red", buffer, 64, [](int i) { return uint32_t(101 + i); });
  std::vector<uint32_t> host(3 * kGranule / 8, 0xabcd1234);
  CUDA_CHECK(cudaMemcpy(words, host.data(), host.size() * 4, cudaMemcpyHostToDevice));
  Everywhere<uint32_t>("cudaMemcpy", buffer, int(host.size()), [](int) { return 0xabcd1234; });
  CUDA_CHECK(cudaMemset(words, 0x5a, 4096));
  Everywhere<uint32_t>("cudaMemset", buffer, 1024, [](int) { return 0x5a5a5a5au; });
  // What a plain load would give is undefined; a copy from there is refused.
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemcpy(host.data(), words, 64, cudaMemcpyDeviceToHost));
}

// Different memory behind different parts, and an offset in the mapping.
void Bindings() {
  const auto multicast = CreateMulticast(2, 2 * kGranule);
  const auto first = CreateOn(0, 2 * kGranule), second = CreateOn(1, kGranule),
             third = CreateOn(1, kGranule);
  DRIVER_CHECK(DRIVER(cuMulticastAddDevice)(multicast, 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMulticastAddDevice)(multicast, 0));
  DRIVER_CHECK(DRIVER(cuMulticastAddDevice)(multicast, 1));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMulticastAddDevice)(multicast, 2));
  uint32_t* on0 = MapFor<uint32_t>(first, 2 * kGranule, 0, 1);
  uint32_t* low1 = MapFor<uint32_t>(second, kGranule, 0, 1);
  uint32_t* high1 = MapFor<uint32_t>(third, kGranule, 0, 1);
  DRIVER_CHECK(DRIVER(cuMulticastBindMem)(multicast, 0, first, 0, 2 * kGranule, 0));
  // Device 1's half by its address, the other by its handle.
  DRIVER_CHECK(DRIVER(cuMulticastBindAddr)(multicast, 0, CUdeviceptr(low1), kGranule, 0));
  DRIVER_CHECK(DRIVER(cuMulticastBindMem)(multicast, kGranule, third, 0, kGranule, 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE,
                DRIVER(cuMulticastBindMem)(multicast, kGranule, third, 0, kGranule, 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE,
                DRIVER(cuMulticastBindMem)(multicast, 0, third, kGranule, kGranule, 0));
  const auto foreign = CreateOn(2, kGranule);
  DRIVER_EXPECT(CUDA_ERROR_INVALID_DEVICE,
                DRIVER(cuMulticastBindMem)(multicast, 0, foreign, 0, kGranule, 0));
  // Upper half only, then all of it.
  const CUdeviceptr upper = Reserve(kGranule);
  DRIVER_CHECK(DRIVER(cuMemMap)(upper, kGranule, kGranule, multicast, 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_DEVICE, [&] {
    const CUmemAccessDesc outsider = RightOf(2);
    return DRIVER(cuMemSetAccess)(upper, kGranule, &outsider, 1);
  }());
  Allow(upper, kGranule, 0, 1);
  uint32_t* all = MapFor<uint32_t>(multicast, 2 * kGranule, 0, 1);
  CUDA_CHECK(cudaSetDevice(1));
  Store<<<1, 32>>>(reinterpret_cast<uint32_t*>(upper), 500);
  CUDA_CHECK(cudaDeviceSynchronize());
  const size_t half = kGranule / 4;
  REQUIRE(Fetch(on0 + half + 3) == 503 && Fetch(high1 + 3) == 503, "upper half");
  // A warp and a copy across the seam of two bindings.
  Store<<<1, 32>>>(all + half - 16, 900);
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 32; ++i) {
    const uint32_t there = Fetch(i < 16 ? low1 + half - 16 + i : high1 + i - 16);
    REQUIRE(Fetch(on0 + half - 16 + i) == 900u + i && there == 900u + i, "seam %d", i);
  }
  CUDA_CHECK(cudaMemset(all, 0, 2 * kGranule));
  REQUIRE(Fetch(low1 + half - 1) == 0 && Fetch(high1) == 0 && Fetch(on0 + half) == 0, "set");
  // Unbound, there is nothing to write to.
  DRIVER_CHECK(DRIVER(cuMulticastUnbind)(multicast, 1, kGranule, kGranule));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemset(all, 0, 2 * kGranule));
  CUDA_CHECK(cudaMemset(all, 0, kGranule));
  Store<<<1, 32>>>(reinterpret_cast<uint32_t*>(upper), 1);
  CUDA_EXPECT(cudaErrorIllegalAddress, cudaDeviceSynchronize());
}

// Stream-ordered memory can be bound as well, by its address.
void StreamOrdered() {
  const auto multicast = CreateMulticast(2, kGranule);
  uint32_t* on[2];
  for (int d = 0; d < 2; ++d) DRIVER_CHECK(DRIVER(cuMulticastAddDevice)(multicast, d));
  for (int d = 0; d < 2; ++d) {
    CUDA_CHECK(cudaSetDevice(d));
    CUDA_CHECK(cudaMallocAsync(reinterpret_cast<void**>(&on[d]), kGranule, nullptr));
    CUDA_CHECK(cudaDeviceSynchronize());
    DRIVER_CHECK(DRIVER(cuMulticastBindAddr)(multicast, 0, CUdeviceptr(on[d]), kGranule, 0));
  }
  void* plain = nullptr;
  CUDA_CHECK(cudaMalloc(&plain, kGranule));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE,
                DRIVER(cuMulticastBindAddr)(multicast, 0, CUdeviceptr(plain), kGranule, 0));
  uint32_t* all = MapFor<uint32_t>(multicast, kGranule, 0, 1);
  Store<<<1, 64>>>(all, 77);
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(Fetch(on[0] + 5) == 82 && Fetch(on[1] + 5) == 82, "stream-ordered memory");
  // Libraries tear down in any order: the handle may be released before its memory is unbound.
  DRIVER_CHECK(DRIVER(cuMemRelease)(multicast));
  DRIVER_CHECK(DRIVER(cuMulticastUnbind)(multicast, 0, 0, kGranule));
  UnmapAndFree(all, kGranule);
  DRIVER_CHECK(DRIVER(cuMulticastUnbind)(multicast, 1, 0, kGranule));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE,
                DRIVER(cuMulticastUnbind)(multicast + 1000, 0, 0, kGranule));
}

}  // namespace

int main() {
  RequireDevices(kDevices);
  int supported = 0;
  DRIVER_CHECK(
      DRIVER(cuDeviceGetAttribute)(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
  REQUIRE(supported == 1, "no multicast");
  MulticastBuffer<char> buffer(kDevices, 2 * kGranule);
  Loads(buffer);
  VectorLoads(buffer);
  Stores(buffer);
  StreamOrdered();
  uint32_t* out = ZeroedOn<uint32_t>(3);
  PlainLoad<<<1, 1>>>(reinterpret_cast<uint32_t*>(buffer.everywhere), out);
  CUDA_EXPECT(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  Bindings();
  std::printf("PASS multicast_reduce\n");
}
