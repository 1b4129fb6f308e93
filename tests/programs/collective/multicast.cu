// Collectives by multicast: the switch adds up what multimem.ld_reduce reads from all devices, and
// spreads what multimem.st and multimem.red write. one_shot: everyone reduces everything. two_shot:
// everyone reduces a slice and stores it to all. two_shot_half: the same in f16x2 with sums in f32.
// all_gather: everyone stores its block to all.
//
// Ranks meet by adding to a counter on all devices at once; each waits on its own copy. Between an
// access through the multicast address and one through the ordinary address of the same memory
// stands a fence for aliases.
//
// run one_shot.2.threads: | 2 threads one_shot
// run one_shot.3.processes: | 3 processes one_shot
// run one_shot.8.threads: | 8 threads one_shot
// run two_shot.2.processes: | 2 processes two_shot
// run two_shot.5.threads: | 5 threads two_shot
// run two_shot.8.processes: | 8 processes two_shot
// run two_shot_half.3.threads: | 3 threads two_shot_half
// run two_shot_half.8.processes: | 8 processes two_shot_half
// run all_gather.2.threads: | 2 threads all_gather
// run all_gather.7.processes: | 7 processes all_gather
// run all_gather.4.mixed: | 4 mixed all_gather
// run two_shot.8.two_hosts: --profile gb200nvl72 --ranks 8 | 8 launched two_shot
// run all_gather.5.two_hosts: --profile gb200nvl72 --ranks 5 | 5 launched all_gather
// nvcc: -arch=sm_90
#include <cuda_fp16.h>

#include "symmetric.h"

namespace {

constexpr int kBlocks = 2, kThreads = 128, kQuads = 420, kCalls = 4;  // 16-byte vectors
constexpr int kWords = 4 * kQuads;

struct Window {
  uint32_t arrived[kBlocks];  // of all calls and ranks
  alignas(16) uint4 input[kQuads];
  uint4 output[kQuads];
};

// Exact in half, as are sums over eight ranks.
int Number(int rank, int call, int i) { return (rank * 29 + call * 13 + i) % 201 - 100; }

uint32_t Word(int rank, int call, int i, bool half) {
  if (!half) {
    const float value = float(Number(rank, call, i));
    uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    return word;
  }
  const __half2 value =
      __floats2half2_rn(float(Number(rank, call, 2 * i)), float(Number(rank, call, 2 * i + 1)));
  uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

__device__ void FenceAliases() { asm volatile("fence.proxy.alias;" ::: "memory"); }

// `meetings` before this one have been held by this block.
__device__ void Meet(Window* all, Window* mine, int rank, int ranks, uint32_t meetings) {
  FenceAliases();
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile(
        "multimem.red.release.sys.global.add.u32 [%0], %1;" ::"l"(&all->arrived[blockIdx.x]), "r"(1)
        : "memory");
    FenceAliases();
    WaitAtLeast(&mine->arrived[blockIdx.x], (meetings + 1) * ranks);
    Stumble(rank * gridDim.x + blockIdx.x, meetings);
  }
  __syncthreads();
  FenceAliases();
}

template <bool kHalf>
__device__ uint4 LoadReduce(const uint4* all) {
  uint4 v;
  if (kHalf) {
    asm volatile(
        "multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(all)
        : "memory");
  } else {
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(all)
                 : "memory");
  }
  return v;
}

__device__ void StoreAll(uint4* all, uint4 v) {
  asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(all), "r"(v.x),
               "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

// Block b of every rank has the same vectors of each slice.
template <class Do>
__device__ void InSlice(Slice slice, Do work) {
  for (int i = slice.begin + blockIdx.x * kThreads + threadIdx.x; i < slice.end;
       i += kBlocks * kThreads)
    work(i);
}

__global__ void OneShot(Window* all, Window* mine, int rank, int ranks, uint32_t call,
                        const uint4* input, uint4* output) {
  InSlice({0, kQuads}, [=](int i) { mine->input[i] = input[i]; });
  Meet(all, mine, rank, ranks, 2 * call);
  InSlice({0, kQuads}, [=](int i) { output[i] = LoadReduce<false>(&all->input[i]); });
  Meet(all, mine, rank, ranks, 2 * call + 1);
}

template <bool kHalf>
__global__ void TwoShot(Window* all, Window* mine, int rank, int ranks, uint32_t call,
                        const uint4* input, uint4* output) {
  for (int r = 0; r < ranks; ++r)
    InSlice(SliceOf(kQuads, r, ranks), [=](int i) { mine->input[i] = input[i]; });
  Meet(all, mine, rank, ranks, 2 * call);
  InSlice(SliceOf(kQuads, rank, ranks),
          [=](int i) { StoreAll(&all->output[i], LoadReduce<kHalf>(&all->input[i])); });
  Meet(all, mine, rank, ranks, 2 * call + 1);
  for (int r = 0; r < ranks; ++r)
    InSlice(SliceOf(kQuads, r, ranks), [=](int i) { output[i] = mine->output[i]; });
}

__global__ void AllGather(Window* all, Window* mine, int rank, int ranks, uint32_t call,
                          const uint4* input, uint4* output) {
  Meet(all, mine, rank, ranks, 2 * call);  // the last result has been read everywhere
  InSlice(SliceOf(kQuads, rank, ranks), [=](int i) { StoreAll(&all->output[i], input[i]); });
  Meet(all, mine, rank, ranks, 2 * call + 1);
  for (int r = 0; r < ranks; ++r)
    InSlice(SliceOf(kQuads, r, ranks), [=](int i) { output[i] = mine->output[i]; });
}

using Kernel = void (*)(Window*, Window*, int, int, uint32_t, const uint4*, uint4*);

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const bool half = setup.scheme == "two_shot_half", gather = setup.scheme == "all_gather";
  const Kernel kernel = half                         ? TwoShot<true>
                        : gather                     ? AllGather
                        : setup.scheme == "one_shot" ? OneShot
                                                     : TwoShot<false>;
  return RunWorld(setup, [=](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    int supported = 0;
    DRIVER_CHECK(DRIVER(cuDeviceGetAttribute)(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
                                              world.device()));
    REQUIRE(supported, "device %d has no multicast", rank);
    const Symmetric window(world, sizeof(Window), true);
    std::vector<uint32_t> inputs;
    for (int k = 0; k < kCalls * kWords; ++k)
      inputs.push_back(Word(rank, k / kWords, k % kWords, half));
    const auto* input = reinterpret_cast<const uint4*>(world.Allocate(inputs));
    uint32_t* output = world.Allocate<uint32_t>(inputs.size());
    for (int call = 0; call < kCalls; ++call) {
      kernel<<<kBlocks, kThreads, 0, world.stream()>>>(
          window.multicast<Window>(), window.peers<Window>()[rank], rank, ranks, call,
          input + call * kQuads, reinterpret_cast<uint4*>(output) + call * kQuads);
      CUDA_CHECK_LAUNCH();
    }
    const std::vector<uint32_t> got = world.Result(output, inputs.size());
    for (size_t k = 0; k < got.size(); ++k) {
      const int call = int(k) / kWords, i = int(k) % kWords;
      uint32_t expected;
      if (gather) {
        int owner = 0;
        while (i / 4 >= SliceOf(kQuads, owner, ranks).end) ++owner;
        expected = Word(owner, call, i, false);
      } else {
        float low = 0, high = 0;
        for (int r = 0; r < ranks; ++r) {
          low += float(Number(r, call, half ? 2 * i : i));
          high += half ? float(Number(r, call, 2 * i + 1)) : 0;
        }
        const __half2 both = __floats2half2_rn(low, high);
        std::memcpy(&expected, half ? static_cast<const void*>(&both) : &low, sizeof expected);
      }
      REQUIRE(got[k] == expected, "rank %d of %d, %s, call %d, word %d: %08x, expected %08x", rank,
              ranks, setup.scheme.c_str(), call, i, got[k], expected);
    }
  });
}
