// PyTorch's symmetric memory: a pad of signals per rank, one word per block and peer. put: compare
// and swap 0 by 1 at the peer until it succeeds; wait: 1 by 0 at home. So words are empty again
// when a meeting is over, and nobody counts. one shot, two shots, and multicast, on buffers that an
// earlier copy of the stream has filled.
//
// As shipped a put releases only if the kernel has written before it, and a wait acquires only if
// the kernel will read after it: the first meeting of a call puts relaxed, the last one waits
// relaxed. Both times the rest is left to the kernel boundary, and PTX does not grant it: what an
// earlier copy wrote is read by peers, and what peers have read is overwritten by a later copy, in
// no order (`release-pattern`, `acquire-pattern`). fixed: all puts release, all waits acquire.
//
// finds: race
// run shipped.two: --devices 2 | 2 threads shipped
// run shipped.four: --devices 4 | 4 threads shipped
// run shipped.eight: --devices 8 | 8 threads shipped
// run fixed.two: --devices 2 | 2 threads fixed
// run fixed.four: --devices 4 | 4 threads fixed
// run fixed.eight: --devices 8 | 8 threads fixed
// nvcc: -arch=sm_90
#include "sums.h"
#include "symmetric.h"

namespace {

constexpr int kBlocks = 2, kThreads = 64, kQuads = 320, kCalls = 3;

struct Window {
  uint32_t pad[kBlocks][kMaxRanks];
  alignas(16) float4 data[kQuads];
};

template <bool kRelease>
__device__ void Put(uint32_t* signal) {
  uint32_t old;
  do {
    if (kRelease) {
      asm volatile("atom.cas.release.sys.global.b32 %0, [%1], 0, 1;"
                   : "=r"(old)
                   : "l"(signal)
                   : "memory");
    } else {
      asm volatile("atom.cas.relaxed.sys.global.b32 %0, [%1], 0, 1;"
                   : "=r"(old)
                   : "l"(signal)
                   : "memory");
    }
  } while (old != 0);
}

template <bool kAcquire>
__device__ void Wait(uint32_t* signal) {
  uint32_t old;
  do {
    if (kAcquire) {
      asm volatile("atom.cas.acquire.sys.global.b32 %0, [%1], 1, 0;"
                   : "=r"(old)
                   : "l"(signal)
                   : "memory");
    } else {
      asm volatile("atom.cas.relaxed.sys.global.b32 %0, [%1], 1, 0;"
                   : "=r"(old)
                   : "l"(signal)
                   : "memory");
    }
  } while (old != 1);
}

template <bool kRelease, bool kAcquire>
__device__ void MeetPeers(const Peers<Window>& windows, int rank, int ranks) {
  if (kRelease) __syncthreads();
  if (threadIdx.x < ranks && threadIdx.x != rank) {
    Put<kRelease>(&windows[threadIdx.x]->pad[blockIdx.x][rank]);
    Wait<kAcquire>(&windows[rank]->pad[blockIdx.x][threadIdx.x]);
  }
  if (kAcquire) __syncthreads();
}

__device__ float4 SumOf(const Peers<Window>& windows, int ranks, int i) {
  float4 sum = make_float4(0, 0, 0, 0);
  for (int r = 0; r < ranks; ++r) Add(sum, windows[r]->data[i]);
  return sum;
}

template <bool kShipped>
__global__ void OneShot(Window*, Peers<Window> windows, int rank, int ranks, float4* output) {
  MeetPeers<!kShipped, true>(windows, rank, ranks);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < kQuads; i += kBlocks * kThreads)
    output[i] = SumOf(windows, ranks, i);
  MeetPeers<true, !kShipped>(windows, rank, ranks);
}

// Each rank reduces a slice and stores it into everyone's buffer.
template <bool kShipped>
__global__ void TwoShot(Window*, Peers<Window> windows, int rank, int ranks, float4* output) {
  MeetPeers<!kShipped, true>(windows, rank, ranks);
  const Slice slice = SliceOf(kQuads, rank, ranks);
  const int thread = blockIdx.x * kThreads + threadIdx.x, stride = kBlocks * kThreads;
  for (int i = slice.begin + thread; i < slice.end; i += stride) {
    const float4 sum = SumOf(windows, ranks, i);
    for (int step = 0; step < ranks; ++step) windows[(rank + step) % ranks]->data[i] = sum;
  }
  MeetPeers<true, true>(windows, rank, ranks);
  for (int r = 0; r < ranks; ++r) {
    const Slice part = SliceOf(kQuads, r, ranks);
    for (int i = part.begin + thread; i < part.end; i += stride) output[i] = windows[rank]->data[i];
  }
}

template <bool kShipped>
__global__ void Multicast(Window* all, Peers<Window> windows, int rank, int ranks, float4* output) {
  MeetPeers<!kShipped, true>(windows, rank, ranks);
  const Slice slice = SliceOf(kQuads, rank, ranks);
  const int thread = blockIdx.x * kThreads + threadIdx.x, stride = kBlocks * kThreads;
  for (int i = slice.begin + thread; i < slice.end; i += stride) {
    float4 v;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(&all->data[i])
                 : "memory");
    asm volatile(
        "multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(&all->data[i]),
        "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
        : "memory");
  }
  MeetPeers<true, true>(windows, rank, ranks);
  for (int r = 0; r < ranks; ++r) {
    const Slice part = SliceOf(kQuads, r, ranks);
    for (int i = part.begin + thread; i < part.end; i += stride) output[i] = windows[rank]->data[i];
  }
}

template <bool kShipped>
void Run(World& world) {
  const Symmetric memory(world, sizeof(Window), true);
  const auto windows = memory.peers<Window>();
  for (const auto kernel : {OneShot<kShipped>, TwoShot<kShipped>, Multicast<kShipped>}) {
    RunAllReduce(world, "sum", kQuads, kCalls, [&](int, const float4* input, float4* output) {
      CUDA_CHECK(cudaMemcpyAsync(windows[world.rank()]->data, input, sizeof(Window::data),
                                 cudaMemcpyDeviceToDevice, world.stream()));
      kernel<<<kBlocks, kThreads, 0, world.stream()>>>(memory.multicast<Window>(), windows,
                                                       world.rank(), world.ranks(), output);
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const bool shipped = Shipped(setup);
  return RunWorld(setup, [=](World& world) { shipped ? Run<true>(world) : Run<false>(world); });
}
