// Lamport all-reduce: no flags and no barriers. Every rank pushes its input into a slot at every
// peer, and a reader polls the data itself: -0.0 means "not yet written", so that value is never
// sent. Slots exist three times: call e reads set e, which was cleared in call e - 2, and clears
// the set of call e - 1, which everyone has finished with on this rank.
//
// Why a peer's push of call e + 2 cannot meet the clearing in call e: the peer starts call e + 2
// after it has seen this rank's push of call e + 1, which follows the end of this rank's call e.
//
// run 2.processes: | 2 processes
// run 3.threads: | 3 threads
// run 5.processes: | 5 processes
// run 8.threads: | 8 threads
#include "world.h"

namespace {

constexpr int kBlocks = 4, kThreads = 64, kQuads = 400, kCount = 4 * kQuads, kCalls = 8;

struct Slots {
  float4 set[3][kMaxRanks][kQuads];
};

// Negative, zero (of both signs) and positive.
float Input(int rank, int call, int i) {
  const int value = (rank * 5 + call * 3 + i) % 41 - 20;
  return value == 0 && i % 2 == 0 ? -0.0f : float(value);
}

__device__ bool IsSentinel(float x) { return __float_as_uint(x) == 0x80000000u; }
__device__ float WithoutSentinel(float x) { return IsSentinel(x) ? 0.0f : x; }

__device__ float4 LoadVolatile(const float4* p) {
  float4 v;
  asm volatile("ld.volatile.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p)
               : "memory");
  return v;
}

__device__ void StoreVolatile(float4* p, float4 v) {
  asm volatile("st.volatile.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
}

__global__ void Clear(Slots* slots) {
  float4* all = &slots->set[0][0][0];
  for (int i = threadIdx.x; i < 3 * kMaxRanks * kQuads; i += blockDim.x)
    all[i] = make_float4(-0.0f, -0.0f, -0.0f, -0.0f);
}

__global__ void AllReduce(Peers<Slots> slots, int rank, int ranks, int call, const float4* input,
                          float4* output) {
  Slots* mine = slots[rank];
  if (threadIdx.x == 0) Stumble(rank * gridDim.x + blockIdx.x, call);
  __syncthreads();
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < kQuads; i += kBlocks * kThreads) {
    float4 v = input[i];
    v = make_float4(WithoutSentinel(v.x), WithoutSentinel(v.y), WithoutSentinel(v.z),
                    WithoutSentinel(v.w));
    for (int p = 0; p < ranks; ++p)
      StoreVolatile(&slots[(rank + p) % ranks]->set[call % 3][rank][i], v);
    for (int p = 0; p < ranks; ++p)
      StoreVolatile(&mine->set[(call + 2) % 3][p][i], make_float4(-0.0f, -0.0f, -0.0f, -0.0f));
    float4 sum = make_float4(0, 0, 0, 0);
    for (int p = 0; p < ranks; ++p) {
      // Each word carries its own sentinel, so a torn 16-byte access does no harm.
      do {
        v = LoadVolatile(&mine->set[call % 3][p][i]);
      } while (IsSentinel(v.x) || IsSentinel(v.y) || IsSentinel(v.z) || IsSentinel(v.w));
      sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
    }
    output[i] = sum;
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const auto slots = world.Share<Slots>();
    std::vector<float> inputs;
    for (int k = 0; k < kCalls * kCount; ++k)
      inputs.push_back(Input(world.rank(), k / kCount, k % kCount));
    const auto* input = reinterpret_cast<const float4*>(world.Allocate(inputs));
    float* output = world.Allocate<float>(inputs.size());
    Clear<<<1, 256, 0, world.stream()>>>(slots[world.rank()]);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaStreamSynchronize(world.stream()));
    world.Barrier();
    for (int call = 0; call < kCalls; ++call) {
      AllReduce<<<kBlocks, kThreads, 0, world.stream()>>>(
          slots, world.rank(), world.ranks(), call, input + call * kQuads,
          reinterpret_cast<float4*>(output) + call * kQuads);
      CUDA_CHECK_LAUNCH();
    }
    RequireElements(world, "sum", kCalls, world.Result(output, inputs.size()), [&](int k) {
      float sum = 0;
      for (int r = 0; r < world.ranks(); ++r) sum += Input(r, k / kCount, k % kCount);
      return sum;
    });
  });
}
