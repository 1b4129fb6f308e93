// One pair of kernels per effect: `bad` does something that hardware makes slow, `good` does as
// much of the same without it. Prints a line `NAME BAD GOOD` per effect, in nanoseconds of device
// time, launch and ramp-up taken out as the difference of a long and a short run.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#define CHECK(call)                                                      \
  do {                                                                   \
    const cudaError_t check_error = (call);                              \
    if (check_error != cudaSuccess) {                                    \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   cudaGetErrorString(check_error));                     \
      std::_Exit(1);                                                     \
    }                                                                    \
  } while (0)

namespace {

constexpr int kSms = 132;

std::uint32_t* local_memory;   // on device 0
std::uint32_t* remote_memory;  // on device 1
std::uint32_t* sink;           // on device 0: results that keep work alive
constexpr size_t kBytes = size_t{96} << 20;

// ---- what a kernel does `n` times -------------------------------------------------------------

__device__ std::uint32_t Shared(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

__device__ void Keep(std::uint32_t* sink, std::uint32_t value) {
  if (value == 0x12345678) *sink = value;
}

__device__ std::uint32_t LoadShared(std::uint32_t address) {
  std::uint32_t v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address));
  return v;
}

// Words `stride` apart: with 32, all lanes are on one bank. Eight loads are on their way at a time.
__global__ void Banks(std::uint32_t* sink, int n, int stride) {
  extern __shared__ std::uint32_t words[];
  for (int i = threadIdx.x; i < 32 * 40; i += blockDim.x) words[i] = i;
  __syncthreads();
  std::uint32_t sum = 0;
  const std::uint32_t at = Shared(words) + threadIdx.x % 32 * stride * 4;
  for (int i = 0; i < n; ++i) {
    std::uint32_t v[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) v[u] = LoadShared(at + u * 4);
#pragma unroll
    for (int u = 0; u < 8; ++u) sum += v[u];
  }
  Keep(sink, sum);
}

// 16 bytes per lane, one behind the other.
__global__ void SharedStream(std::uint32_t* sink, int n) {
  extern __shared__ uint4 vectors[];
  std::uint32_t sum = 0;
  const std::uint32_t at = Shared(vectors) + threadIdx.x % 32 * 16;
  for (int i = 0; i < n; ++i) {
    uint4 v[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                   : "r"(at + u * 512));
    }
#pragma unroll
    for (int u = 0; u < 8; ++u) sum += v[u].x;
  }
  Keep(sink, sum);
}

__global__ void SharedAtomics(std::uint32_t* sink, int n, int stride) {
  __shared__ std::uint32_t words[32];
  words[threadIdx.x % 32] = 0;
  __syncthreads();
  std::uint32_t sum = 0;
  for (int i = 0; i < n; ++i) sum += atomicAdd(&words[threadIdx.x % 32 * stride], i);
  Keep(sink, sum);
}

// A local array that cannot live in registers, or one that can.
template <bool kDynamic>
__global__ void LocalArray(std::uint32_t* sink, int n) {
  std::uint32_t values[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) values[i] = threadIdx.x + i;
  std::uint32_t sum = 0;
  for (int i = 0; i < n; ++i) {
    if (kDynamic) {
      values[(i * 7 + threadIdx.x) % 16] += i;
    } else {
#pragma unroll
      for (int k = 0; k < 16; ++k) values[k] += (i * 7 + threadIdx.x) % 16 == k ? i : 0;
    }
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) sum += values[i];
  Keep(sink, sum);
}

// kLive values that are all needed at the end of each round, in few registers or in many.
template <int kThreads, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks) ManyLive(std::uint32_t* sink, int n) {
  constexpr int kLive = 96;
  float v[kLive];
#pragma unroll
  for (int i = 0; i < kLive; ++i) v[i] = threadIdx.x + i;
  for (int r = 0; r < n; ++r) {
#pragma unroll
    for (int i = 0; i < kLive; ++i) v[i] = fmaf(v[i], 1.5f, v[(i + 37) % kLive]);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kLive; ++i) sum += v[i];
  Keep(sink, __float_as_uint(sum));
}

#define FMA4(a)                                         \
  asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(a)); \
  asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(a)); \
  asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(a)); \
  asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(a));

// kUnroll groups of eight: straight code of kUnroll * 8 instructions of 16 bytes each.
template <int kUnroll>
__global__ void Straight(std::uint32_t* sink, int n) {
  float a = threadIdx.x, b = 1;
  for (int i = 0; i < n; i += kUnroll) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      FMA4(a) FMA4(b)
    }
  }
  Keep(sink, __float_as_uint(a + b));
}

// Lanes take `ways` different ways through a switch; each way has as much to do.
__global__ void Diverge(std::uint32_t* sink, int n, int ways) {
  float a = threadIdx.x;
  const int way = threadIdx.x % ways;
  for (int w = 0; w < ways; ++w) {
    if (way == w) {
      for (int i = 0; i < n; ++i) {
        FMA4(a) FMA4(a)
      }
    }
  }
  Keep(sink, __float_as_uint(a));
}

// The same work by a jump table: all ways may be under way at once.
__global__ void Switch(std::uint32_t* sink, int n, int ways) {
  float a = threadIdx.x;
  switch (threadIdx.x % ways) {
#define WAY(k)                                                              \
  case k:                                                                   \
    for (int i = 0; i < n; ++i) {                                           \
      asm volatile("fma.rn.f32 %0, %0, %1, %0;" : "+f"(a) : "f"(1.0f * k)); \
      FMA4(a) FMA4(a)                                                       \
    }                                                                       \
    break;
    WAY(0) WAY(1) WAY(2) WAY(3) WAY(4) WAY(5) WAY(6) WAY(7)
  }
  Keep(sink, __float_as_uint(a));
}

template <bool kReturns>
__global__ void Atomics(std::uint32_t* counters, std::uint32_t* sink, int n, int groups,
                        int stride) {
  std::uint32_t sum = 0;
  std::uint32_t* mine = counters + threadIdx.x % groups * stride;
  for (int i = 0; i < n; ++i) {
    if (kReturns) {
      std::uint32_t old;
      asm volatile("atom.relaxed.sys.global.add.u32 %0, [%1], 1;" : "=r"(old) : "l"(mine));
      sum += old;
    } else {
      asm volatile("red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(mine));
    }
  }
  Keep(sink, sum);
}

__global__ void Sleep(std::uint32_t* sink, int n, int ns) {
  for (int i = 0; i < n; ++i) __nanosleep(ns);
  Keep(sink, n);
}

__global__ void Tiny(std::uint32_t* sink) { Keep(sink, threadIdx.x); }

__global__ void TinyDependent(std::uint32_t* sink) {
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  Keep(sink, threadIdx.x);
}

// Each lane a word, lanes `stride` words apart, warps one behind the other; wraps within `words`.
template <int kWords>
__global__ void Loads(const std::uint32_t* from, std::uint32_t* sink, int n, int stride,
                      std::uint32_t words, int offset) {
  std::uint32_t sum = 0;
  const std::uint32_t warps = gridDim.x * blockDim.x / 32;
  const std::uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  for (int i = 0; i < n; i += 8) {
    uint4 v[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      const std::uint32_t at =
          (((i + u) * warps + warp) * 32 * stride * kWords + threadIdx.x % 32 * stride * kWords) %
              words +
          offset;
      if (kWords == 4) {
        asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                     : "l"(from + at));
      } else {
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(v[u].x) : "l"(from + at));
      }
    }
#pragma unroll
    for (int u = 0; u < 8; ++u) sum += v[u].x;
  }
  Keep(sink, sum);
}

// Weak 16-byte loads, kDepth in flight per thread, each from a place of its own.
template <int kDepth>
__global__ void Stream(const uint4* from, std::uint32_t* sink, int n) {
  const size_t step = size_t(gridDim.x) * blockDim.x;
  size_t at = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  std::uint32_t sum = 0;
  for (int i = 0; i < n; i += kDepth) {
    uint4 v[kDepth];
#pragma unroll
    for (int u = 0; u < kDepth; ++u, at += step) {
      asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                   : "l"(from + at));
    }
#pragma unroll
    for (int u = 0; u < kDepth; ++u) sum += v[u].x + v[u].w;
  }
  Keep(sink, sum);
}

// Stores of kBytes per lane to a peer, dense or each lane on a line of its own.
template <int kBytes>
__global__ void Stores(std::uint8_t* to, int n, int stride) {
  const size_t thread = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const size_t threads = size_t(gridDim.x) * blockDim.x;
  for (int i = 0; i < n; ++i) {
    std::uint8_t* at = to + (i * threads + thread) * stride % (size_t{64} << 20);
    if (kBytes == 1) asm volatile("st.global.u8 [%0], %1;" ::"l"(at), "r"(i) : "memory");
    if (kBytes == 4) asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(i) : "memory");
    if (kBytes == 16)
      asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(at), "r"(i) : "memory");
  }
}

// How long a warp is held up by the stores it issues: clocks until behind the last of them.
__global__ void StoreQueue(std::uint8_t* to, std::uint32_t* clocks, int n) {
  const std::uint32_t begin = clock();
  for (int i = 0; i < n; ++i) {
    asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(to + (i * 32 + threadIdx.x) * 16),
                 "r"(i)
                 : "memory");
  }
  if (threadIdx.x == 0) *clocks = clock() - begin;
}

enum class Math { kFma, kEx2, kSqrt, kDouble, kDivide, kShuffle, kConvert, kPopc, kAdd };

template <Math math>
__global__ void Arithmetic(std::uint32_t* sink, int n) {
  float a = threadIdx.x + 1.5f;
  double d = a;
  std::uint32_t u = threadIdx.x + 7;
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      if (math == Math::kFma) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(a));
      if (math == Math::kEx2) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(a));
      if (math == Math::kSqrt) asm volatile("sqrt.rn.f32 %0, %0;" : "+f"(a));
      if (math == Math::kDouble) asm volatile("fma.rn.f64 %0, %0, %0, %0;" : "+d"(d));
      if (math == Math::kDivide) asm volatile("div.u32 %0, 77777777, %0;" : "+r"(u));
      if (math == Math::kShuffle) asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(u));
      if (math == Math::kConvert) {
        asm volatile("{.reg .b16 h; cvt.rn.f16.f32 h, %0; cvt.f32.f16 %0, h;}" : "+f"(a));
      }
      if (math == Math::kPopc) asm volatile("popc.b32 %0, %0;" : "+r"(u));
      if (math == Math::kAdd) asm volatile("add.u32 %0, %0, 3;" : "+r"(u));
    }
  }
  Keep(sink, __float_as_uint(a) + static_cast<std::uint32_t>(d) + u);
}

// Products m16n8k16 by each warp; `chains` of them do not depend on each other.
template <int kChains>
__global__ void Products(std::uint32_t* sink, int n) {
  float c[kChains][4] = {};
  const std::uint32_t a = 0x3c003c00, b = threadIdx.x;
  for (int i = 0; i < n; i += kChains) {
#pragma unroll
    for (int k = 0; k < kChains; ++k) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
          "{%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, {%0, %1, %2, %3};"
          : "+f"(c[k][0]), "+f"(c[k][1]), "+f"(c[k][2]), "+f"(c[k][3])
          : "r"(a), "r"(b));
    }
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kChains; ++k) sum += c[k][0];
  Keep(sink, __float_as_uint(sum));
}

// Loads of 16 bytes per lane from the shared memory of the block at `distance` in its cluster.
__global__ void __cluster_dims__(2, 1, 1) Cluster(std::uint32_t* sink, int n, int distance) {
  __shared__ uint4 vectors[32 * 8];
  for (int i = threadIdx.x; i < 32 * 8; i += blockDim.x) vectors[i] = uint4{1, 2, 3, 4};
  const auto cluster = cooperative_groups::this_cluster();
  cluster.sync();
  std::uint32_t at = Shared(vectors), sum = 0;
  asm volatile("mapa.shared::cluster.u32 %0, %0, %1;"
               : "+r"(at)
               : "r"((cluster.block_rank() + distance) % 2));
  at += threadIdx.x % 32 * 16;
  for (int i = 0; i < n; ++i) {
    uint4 v[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                   : "r"(at + u * 512));
    }
#pragma unroll
    for (int u = 0; u < 8; ++u) sum += v[u].x;
  }
  Keep(sink, sum);
  cluster.sync();
}

// `n` bulk copies of `bytes` each into shared memory by one thread, then one wait.
__global__ void Bulk(const std::uint8_t* from, std::uint32_t* sink, int n, int bytes) {
  extern __shared__ __align__(128) std::uint8_t stage[];
  __shared__ std::uint64_t barrier;
  if (threadIdx.x != 0) return;
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Shared(&barrier)));
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Shared(&barrier)),
               "r"(n * bytes)
               : "memory");
  for (int i = 0; i < n; ++i) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(Shared(stage + i * bytes % 65536)),
        "l"(from + size_t(i) * bytes), "r"(bytes), "r"(Shared(&barrier))
        : "memory");
  }
  int done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
        "selp.b32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(Shared(&barrier))
        : "memory");
  }
  Keep(sink, stage[0]);
}

__constant__ std::uint32_t constants[4096];

__global__ void Constant(std::uint32_t* sink, int n, int spread) {
  std::uint32_t sum = 0;
  for (int i = 0; i < n; ++i) sum += constants[(threadIdx.x % 32 * spread + sum % 2 + i) % 4096];
  Keep(sink, sum);
}

struct Block {
  std::uint32_t words[960];
};

__global__ void FromArguments(const __grid_constant__ Block block, std::uint32_t* sink, int n) {
  std::uint32_t sum = 0;
  for (int i = 0; i < n; ++i) sum += block.words[(i * 32 + threadIdx.x + sum % 2) % 960];
  Keep(sink, sum);
}

__global__ void FromMemory(const std::uint32_t* words, std::uint32_t* sink, int n) {
  std::uint32_t sum = 0;
  for (int i = 0; i < n; ++i) sum += words[(i * 32 + threadIdx.x + sum % 2) % 960];
  Keep(sink, sum);
}

template <int kScope>
__global__ void Fences(std::uint32_t* sink, int n) {
  for (int i = 0; i < n; ++i) {
    if (kScope == 0) asm volatile("fence.acq_rel.cta;" ::: "memory");
    if (kScope == 1) asm volatile("fence.acq_rel.gpu;" ::: "memory");
    if (kScope == 2) asm volatile("fence.acq_rel.sys;" ::: "memory");
  }
  Keep(sink, n);
}

__global__ void Meet(std::uint32_t* sink, int n) {
  for (int i = 0; i < n; ++i) __syncthreads();
  Keep(sink, n);
}

// Warps 0 to 3 stream from the L2; of the others, `pollers` lanes wait for them by polling 16 bytes
// each of own memory.
__global__ void PollBeside(const uint4* from, volatile std::uint32_t* flag, std::uint32_t* sink,
                           int n, int pollers) {
  const int thread = static_cast<int>(threadIdx.x) - 128;
  if (thread < 0) {
    std::uint32_t sum = 0;
    for (int i = 0; i < n; i += 8) {
      uint4 v[8];
#pragma unroll
      for (int u = 0; u < 8; ++u) {
        asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                     : "l"(from + ((i + u) * 128 + threadIdx.x) % 4096));
      }
#pragma unroll
      for (int u = 0; u < 8; ++u) sum += v[u].x;
    }
    Keep(sink, sum);
    asm volatile("barrier.sync 1, 128;" ::: "memory");
    for (int i = threadIdx.x; i < pollers; i += 128) {
      asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(flag + i * 4), "r"(n) : "memory");
    }
  } else if (thread < pollers) {
    std::uint32_t seen = 0;
    do {
      asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(flag + thread * 4)
                   : "memory");
    } while (seen != n);
  }
}

// Dependent loads, each `stride` bytes behind the last.
__global__ void Chase(const std::uint32_t* from, std::uint32_t* sink, int n, size_t stride,
                      size_t bytes) {
  std::uint32_t sum = 0;
  size_t at = 0;
  for (int i = 0; i < n; ++i) {
    sum += from[at / 4];
    at = (at + stride + sum % 2) % bytes;
  }
  Keep(sink, sum);
}

template <bool kPrefetch>
__global__ void Ahead(const std::uint32_t* from, std::uint32_t* sink, int n, size_t skip) {
  std::uint32_t sum = 0;
  for (int i = 0; i < n; ++i) {
    const std::uint32_t* at = from + skip + size_t(i) * 32 * 32 + threadIdx.x * 32;
    if (kPrefetch) asm volatile("prefetch.global.L2 [%0];" ::"l"(at + 16 * 32 * 32));
    sum += *at;
    if (sum == 3) ++i;
  }
  Keep(sink, sum);
}

// ---- how long they take -----------------------------------------------------------------------

double Nanoseconds(const std::function<void()>& work) {
  static cudaEvent_t start = nullptr, stop = nullptr;
  if (start == nullptr) {
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
  }
  CHECK(cudaEventRecord(start));
  work();
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  return ms * 1e6;
}

// Of n rounds: the difference of 2n and n, so that launch and start are not in it.
double Rounds(int n, const std::function<void(int)>& launch) {
  Nanoseconds([&] { launch(n); });
  const double once = Nanoseconds([&] { launch(n); });
  return Nanoseconds([&] { launch(2 * n); }) - once;
}

double Graph(int kernels, bool dependent) {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const auto run = [&](int count) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < count; ++i) {
      if (!dependent) {
        Tiny<<<1, 32, 0, stream>>>(sink);
        continue;
      }
      cudaLaunchAttribute attribute{};
      attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t config{};
      config.gridDim = 1;
      config.blockDim = 32;
      config.stream = stream;
      config.attrs = &attribute;
      config.numAttrs = 1;
      CHECK(cudaLaunchKernelEx(&config, TinyDependent, sink));
    }
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start, stream));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaEventRecord(stop, stream));
    CHECK(cudaEventSynchronize(stop));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    return ms * 1e6;
  };
  run(kernels);
  const double once = run(kernels);
  return run(2 * kernels) - once;
}

double Copies(int streams) {
  static std::vector<cudaStream_t> all;
  while (all.size() < static_cast<size_t>(streams)) {
    all.emplace_back();
    CHECK(cudaStreamCreateWithFlags(&all.back(), cudaStreamNonBlocking));
  }
  const size_t bytes = size_t{24} << 20;
  cudaEvent_t start, stop, join;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventCreate(&join));
  CHECK(cudaEventRecord(start, all[0]));
  for (int s = 0; s < streams; ++s) {
    if (s > 0) CHECK(cudaStreamWaitEvent(all[s], start, 0));
    char* to = reinterpret_cast<char*>(remote_memory) + s * bytes / streams;
    const char* from = reinterpret_cast<const char*>(local_memory) + s * bytes / streams;
    CHECK(cudaMemcpyAsync(to, from, bytes / streams, cudaMemcpyDeviceToDevice, all[s]));
    if (s == 0) continue;
    CHECK(cudaEventRecord(join, all[s]));
    CHECK(cudaStreamWaitEvent(all[0], join, 0));
  }
  CHECK(cudaEventRecord(stop, all[0]));
  CHECK(cudaEventSynchronize(stop));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  return ms * 1e6;
}

double StoreClocks(int n) {
  StoreQueue<<<1, 32>>>(reinterpret_cast<std::uint8_t*>(remote_memory), sink, n);
  std::uint32_t clocks = 0;
  CHECK(cudaMemcpy(&clocks, sink, 4, cudaMemcpyDeviceToHost));
  return clocks / 1.755;
}

// Passes over a working set of `mib`, the first of which fetches it.
double Pass(int mib) {
  const int n = mib * (1 << 20) / (kSms * 1024 * 16) / 8 * 8;
  const auto* from = reinterpret_cast<const uint4*>(local_memory);
  Nanoseconds([&] { Stream<8><<<kSms, 1024>>>(from, sink, n); });
  const double empty = Nanoseconds([&] { Tiny<<<kSms, 1024>>>(sink); });
  return (Nanoseconds([&] { Stream<8><<<kSms, 1024>>>(from, sink, n); }) - empty) / mib;
}

template <Math math>
double MathTime() {
  return Rounds(64, [](int n) { Arithmetic<math><<<1, 1024>>>(sink, n); });
}

struct Pair {
  double bad, good;
};

using Effect = std::pair<const char*, std::function<Pair()>>;

std::vector<Effect> Effects() {
  auto* words = local_memory;
  auto* vectors = reinterpret_cast<const uint4*>(local_memory);
  auto* bytes = reinterpret_cast<std::uint8_t*>(local_memory);
  auto* far = reinterpret_cast<std::uint8_t*>(remote_memory);
  const auto two = [](auto measure, auto bad, auto good) {
    return [=] { return Pair{measure(bad), measure(good)}; };
  };
  return {
      {"bank_conflicts", two(
                             [](int stride) {
                               return Rounds(
                                   32, [=](int n) { Banks<<<1, 1024, 8192>>>(sink, n, stride); });
                             },
                             32, 1)},
      {"shared_bandwidth", two(
                               [](int threads) {
                                 return Rounds(32, [=](int n) {
                                   SharedStream<<<1, threads, 8192>>>(sink, n);
                                 });
                               },
                               1024, 128)},
      {"shared_atomics", two(
                             [](int stride) {
                               return Rounds(
                                   64, [=](int n) { SharedAtomics<<<1, 256>>>(sink, n, stride); });
                             },
                             0, 1)},
      {"local_memory",
       [] {
         return Pair{Rounds(64, [](int n) { LocalArray<true><<<1, 1024>>>(sink, n); }),
                     Rounds(64, [](int n) { LocalArray<false><<<1, 1024>>>(sink, n); })};
       }},
      {"spills",
       [] {
         return Pair{Rounds(16, [](int n) { ManyLive<512, 4><<<1, 512>>>(sink, n); }),
                     Rounds(16, [](int n) { ManyLive<512, 1><<<1, 512>>>(sink, n); })};
       }},
      {"long_code",
       [] {
         return Pair{Rounds(1024, [](int n) { Straight<1024><<<1, 128>>>(sink, n); }),
                     Rounds(1024, [](int n) { Straight<16><<<1, 128>>>(sink, n); })};
       }},
      {"divergence",
       two([](int ways) { return Rounds(64, [=](int n) { Diverge<<<1, 32>>>(sink, n, ways); }); },
           8, 1)},
      {"divergence_switch",
       two([](int ways) { return Rounds(64, [=](int n) { Switch<<<1, 32>>>(sink, n, ways); }); }, 8,
           1)},
      {"atomics_one_address",
       [=] {
         const auto run = [=](int groups) {
           return Rounds(16, [=](int n) { Atomics<true><<<8, 256>>>(words, sink, n, groups, 32); });
         };
         return Pair{run(1), run(256)};
       }},
      {"atomics_two_addresses",
       [=] {
         const auto run = [=](int groups) {
           return Rounds(16, [=](int n) { Atomics<true><<<8, 256>>>(words, sink, n, groups, 32); });
         };
         return Pair{run(2), run(256)};
       }},
      {"atomics_one_sector",
       [=] {
         const auto run = [=](int stride) {
           return Rounds(16, [=](int n) { Atomics<true><<<8, 256>>>(words, sink, n, 8, stride); });
         };
         return Pair{run(1), run(32)};
       }},
      {"atomics_remote",
       [=] {
         const auto run = [=](std::uint32_t* at) {
           return Rounds(16, [=](int n) { Atomics<true><<<8, 256>>>(at, sink, n, 1, 32); });
         };
         return Pair{run(remote_memory), run(words)};
       }},
      {"atom_for_red",
       [=] {
         return Pair{Rounds(16, [=](int n) { Atomics<true><<<1, 32>>>(words, sink, n, 32, 32); }),
                     Rounds(16, [=](int n) { Atomics<false><<<1, 32>>>(words, sink, n, 32, 32); })};
       }},
      {"nanosleep",
       two([](int ns) { return Rounds(16, [=](int n) { Sleep<<<1, 32>>>(sink, n, ns); }); }, 40,
           20)},
      {"many_kernels",
       [] {
         return Pair{Graph(16, false), Graph(1, false)};
       }},
      {"dependent_launch",
       [] {
         return Pair{Graph(16, false), Graph(16, true)};
       }},
      {"prefetch",
       [=] {
         const size_t skip = size_t{16} << 20;
         return Pair{Rounds(64, [=](int n) { Ahead<false><<<1, 32>>>(words, sink, n, 0); }),
                     Rounds(64, [=](int n) { Ahead<true><<<1, 32>>>(words, sink, n, skip / 4); })};
       }},
      {"uncoalesced", two(
                          [=](int stride) {
                            return Rounds(32, [=](int n) {
                              Loads<1><<<kSms, 1024>>>(words, sink, n, stride, 1 << 22, 0);
                            });
                          },
                          32, 1)},
      {"misaligned", two(
                         [=](int offset) {
                           return Rounds(32, [=](int n) {
                             Loads<4><<<kSms, 1024>>>(words, sink, n, 1, 1 << 22, offset);
                           });
                         },
                         4, 0)},
      {"byte_stores_remote",
       [=] {
         return Pair{Rounds(64, [=](int n) { Stores<1><<<64, 512>>>(far, n, 1); }),
                     Rounds(4, [=](int n) { Stores<16><<<64, 512>>>(far, n, 16); })};
       }},
      {"scattered_stores_remote",
       [=] {
         return Pair{Rounds(16, [=](int n) { Stores<4><<<64, 512>>>(far, n, 128); }),
                     Rounds(16, [=](int n) { Stores<4><<<64, 512>>>(far, n, 4); })};
       }},
      {"loads_in_flight",
       [=] {
         return Pair{Rounds(64, [=](int n) { Stream<1><<<1, 32>>>(vectors, sink, n); }),
                     Rounds(64, [=](int n) { Stream<32><<<1, 32>>>(vectors, sink, n); })};
       }},
      {"stores_in_flight",
       [] {
         return Pair{StoreClocks(2048), StoreClocks(32)};
       }},
      {"one_sm_for_hbm",
       [=] {
         return Pair{Rounds(132, [=](int n) { Stream<8><<<1, 1024>>>(vectors, sink, n); }),
                     Rounds(8, [=](int n) { Stream<8><<<16, 1024>>>(vectors, sink, n); })};
       }},
      {"one_sm_for_nvlink",
       [=] {
         return Pair{Rounds(128, [=](int n) { Stores<16><<<1, 1024>>>(far, n, 16); }),
                     Rounds(2, [=](int n) { Stores<16><<<64, 1024>>>(far, n, 16); })};
       }},
      {"one_warp_issue",
       [] {
         return Pair{Rounds(64, [](int n) { Arithmetic<Math::kFma><<<1, 32>>>(sink, n); }),
                     Rounds(64, [](int n) { Arithmetic<Math::kFma><<<1, 128>>>(sink, n); })};
       }},
      {"integer_add",
       [] {
         return Pair{MathTime<Math::kAdd>(), MathTime<Math::kFma>()};
       }},
      {"special_functions",
       [] {
         return Pair{MathTime<Math::kEx2>(), MathTime<Math::kFma>()};
       }},
      {"square_root",
       [] {
         return Pair{MathTime<Math::kSqrt>(), MathTime<Math::kFma>()};
       }},
      {"integer_division",
       [] {
         return Pair{MathTime<Math::kDivide>(), MathTime<Math::kFma>()};
       }},
      {"double_precision",
       [] {
         return Pair{MathTime<Math::kDouble>(), MathTime<Math::kFma>()};
       }},
      {"shuffles",
       [] {
         return Pair{MathTime<Math::kShuffle>(), MathTime<Math::kFma>()};
       }},
      {"conversions",
       [] {
         return Pair{MathTime<Math::kConvert>(), MathTime<Math::kFma>()};
       }},
      {"population_count",
       [] {
         return Pair{MathTime<Math::kPopc>(), MathTime<Math::kFma>()};
       }},
      {"mma_chain",
       [] {
         return Pair{Rounds(64, [](int n) { Products<1><<<1, 32>>>(sink, n); }),
                     Rounds(64, [](int n) { Products<8><<<1, 32>>>(sink, n); })};
       }},
      // Two warps per quarter of the SM against what wgmma reaches: 2048 products in 4 cycles.
      {"mma_rate",
       [] {
         return Pair{Rounds(64, [](int n) { Products<8><<<1, 512>>>(sink, n); }),
                     64 * 4 * 4 / 1.755};
       }},
      {"cluster_memory", two(
                             [](int distance) {
                               return Rounds(
                                   32, [=](int n) { Cluster<<<2, 512>>>(sink, n, distance); });
                             },
                             1, 0)},
      {"bulk_issue",
       [=] {
         CHECK(cudaFuncSetAttribute(Bulk, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
         return Pair{Rounds(1024, [=](int n) { Bulk<<<1, 32, 65536>>>(bytes, sink, n, 16); }),
                     Rounds(4, [=](int n) { Bulk<<<1, 32, 65536>>>(bytes, sink, n, 4096); })};
       }},
      {"constant_spread", two(
                              [](int spread) {
                                return Rounds(64,
                                              [=](int n) { Constant<<<1, 32>>>(sink, n, spread); });
                              },
                              65, 0)},
      {"arguments",
       [=] {
         static Block block;
         return Pair{Rounds(64, [=](int n) { FromMemory<<<1, 32>>>(words, sink, n); }),
                     Rounds(64, [=](int n) { FromArguments<<<1, 32>>>(block, sink, n); })};
       }},
      {"fence_sys",
       [] {
         return Pair{Rounds(16, [](int n) { Fences<2><<<1, 32>>>(sink, n); }),
                     Rounds(16, [](int n) { Fences<0><<<1, 32>>>(sink, n); })};
       }},
      {"fence_gpu",
       [] {
         return Pair{Rounds(16, [](int n) { Fences<1><<<1, 32>>>(sink, n); }),
                     Rounds(16, [](int n) { Fences<0><<<1, 32>>>(sink, n); })};
       }},
      {"fences_by_many",
       [] {
         return Pair{Rounds(16, [](int n) { Fences<2><<<1, 1024>>>(sink, n); }),
                     Rounds(16, [](int n) { Fences<2><<<1, 32>>>(sink, n); })};
       }},
      {"barrier_of_1024",
       two([](int threads) { return Rounds(64, [=](int n) { Meet<<<1, threads>>>(sink, n); }); },
           1024, 64)},
      {"polling_beside", two(
                             [=](int pollers) {
                               return Rounds(1024, [=](int n) {
                                 PollBeside<<<1, 1024>>>(vectors, words + (1 << 20), sink, n,
                                                         pollers);
                               });
                             },
                             896, 1)},
      {"pages", two(
                    [=](int kib) {
                      return Rounds(16, [=](int n) {
                        Chase<<<1, 1>>>(words, sink, n, size_t(kib) << 10, size_t{96} << 20);
                      });
                    },
                    2048, 128)},
      {"l2_capacity",
       [] {
         return Pair{Pass(88), Pass(34)};
       }},
      {"copy_engines",
       [] {
         return Pair{Copies(1), Copies(3)};
       }},
  };
}

}  // namespace

// lunches [NAME...]
int main(int argc, char** argv) {
  CHECK(cudaSetDevice(1));
  CHECK(cudaMalloc(&remote_memory, kBytes));
  CHECK(cudaMemset(remote_memory, 0, kBytes));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaSetDevice(0));
  CHECK(cudaDeviceEnablePeerAccess(1, 0));
  CHECK(cudaMalloc(&local_memory, kBytes));
  CHECK(cudaMemset(local_memory, 0, kBytes));
  CHECK(cudaMalloc(&sink, 4096));
  CHECK(cudaDeviceSynchronize());
  for (const auto& [name, measure] : Effects()) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i) wanted |= std::strcmp(argv[i], name) == 0;
    if (!wanted) continue;
    const Pair pair = measure();
    std::printf("%s %.1f %.1f\n", name, pair.bad, pair.good);
    std::fflush(stdout);
  }
  return 0;
}
