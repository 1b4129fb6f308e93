// The one-shot all-reduce of FlashInfer and TensorRT-LLM with Lamport buffers: the data is its own
// flag, -0.0 means "not there yet". Three sets of slots are used in turn; a call clears the set of
// the call before it. Which set it is stands in memory, since graphs replay the same arguments:
// every block reads that word and then counts itself in, and the first block writes the word's next
// value when all have counted.
//
// As shipped the values are pushed, and the old set cleared, by plain vector stores, which peers
// poll with volatile loads (`race`: a weak store is never morally strong), and the count orders
// nothing: the first block's plain store may overtake a sibling's read of the word. fixed: stores
// are volatile too, the count releases and the first block acquires it. What remains is told as
// `portability` at most: every word has its own sentinel, so that torn vectors do no harm.
//
// finds: race
// run shipped.two: --devices 2 | 2 threads shipped
// run shipped.four: --devices 4 | 4 threads shipped
// run shipped.eight: --devices 8 | 8 threads shipped
// run fixed.two: --devices 2 | 2 threads fixed
// run fixed.four: --devices 4 | 4 threads fixed
// run fixed.eight: --devices 8 | 8 threads fixed
#include "sums.h"

namespace {

constexpr int kBlocks = 3, kThreads = 64, kQuads = 300, kCalls = 5;

struct Slots {
  float4 set[3][kMaxRanks * kQuads];
};

struct Control {
  uint32_t counted;
  uint32_t set;
  uint32_t to_clear;  // vectors of the set before
};

__device__ bool Missing(float x) { return __float_as_uint(x) == 0x80000000u; }
__device__ bool Missing(float4 v) {
  return Missing(v.x) || Missing(v.y) || Missing(v.z) || Missing(v.w);
}

template <bool kShipped>
__device__ void Push(float4* slot, float4 v) {
  if (kShipped) {
    *slot = v;
  } else {
    StoreVolatile(slot, v);
  }
}

__global__ void ClearAll(Slots* slots) {
  for (int i = threadIdx.x; i < 3 * kMaxRanks * kQuads; i += blockDim.x)
    slots->set[0][i] = make_float4(-0.0f, -0.0f, -0.0f, -0.0f);
}

template <bool kShipped>
__global__ void AllReduce(Peers<Slots> slots, Control* control, int rank, int ranks, int quads,
                          const float4* input, float4* output) {
  const uint32_t set = control->set, to_clear = control->to_clear;
  __syncthreads();
  if (threadIdx.x == 0) {
    if (kShipped) {
      atomicAdd(&control->counted, 1);
    } else {
      AddReleaseGpu(&control->counted, 1);
    }
  }
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  for (int i = first; i < quads; i += stride) {
    float4 v = input[i];
    v = make_float4(Missing(v.x) ? 0 : v.x, Missing(v.y) ? 0 : v.y, Missing(v.z) ? 0 : v.z,
                    Missing(v.w) ? 0 : v.w);
    for (int r = 0; r < ranks; ++r) Push<kShipped>(&slots[r]->set[set][rank * quads + i], v);
  }
  for (int i = first; i < to_clear; i += stride)
    Push<kShipped>(&slots[rank]->set[(set + 2) % 3][i], make_float4(-0.0f, -0.0f, -0.0f, -0.0f));
  for (int i = first; i < quads; i += stride) {
    float4 sum;
    bool done;
    do {
      done = true;
      sum = make_float4(0, 0, 0, 0);
      for (int r = 0; r < ranks; ++r) {
        const float4 v = LoadVolatile(&slots[rank]->set[set][r * quads + i]);
        done &= !Missing(v);
        Add(sum, v);
      }
    } while (!done);
    output[i] = sum;
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    if (kShipped) {
      while (LoadVolatile(&control->counted) != gridDim.x) {
      }
    } else {
      while (LoadAcquireGpu(&control->counted) != gridDim.x) {
      }
    }
    control->set = (set + 1) % 3;
    control->to_clear = quads * ranks;
    control->counted = 0;
  }
}

template <bool kShipped>
void Run(World& world) {
  const auto slots = world.Share<Slots>();
  Control* control = world.Allocate<Control>();
  ClearAll<<<1, 256, 0, world.stream()>>>(slots[world.rank()]);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaStreamSynchronize(world.stream()));
  world.Barrier();
  for (const int quads : {kQuads, 77, kQuads - 1}) {
    const int blocks = quads == 77 ? 1 : kBlocks;
    RunAllReduce(world, "sum", quads, kCalls, [&](int, const float4* input, float4* output) {
      AllReduce<kShipped><<<blocks, kThreads, 0, world.stream()>>>(
          slots, control, world.rank(), world.ranks(), quads, input, output);
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const bool shipped = Shipped(setup);
  return RunWorld(setup, [=](World& world) { shipped ? Run<true>(world) : Run<false>(world); });
}
