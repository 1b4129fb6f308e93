// The all-reduce of TensorRT-LLM's user buffers by multicast (NVLS). Blocks meet their namesakes by
// a flag per peer, which counts meetings; between two meetings each rank lets the switch add up its
// slice and stores the sum to all. The buffer is in place: an earlier copy of the stream fills it,
// a later one takes the result.
//
// As shipped, flags are plain stores that peers poll with volatile loads (`moral-strength`). Before
// the second meeting the block meets, its first thread fences for the system, the block meets
// again, and one thread per peer stores its flag: but a fence releases only with a later strong
// store of its own thread (`release-pattern`). No load acquires. The multimem instructions are
// weak. fixed: each flag is a release store, behind the block's barrier, and each poll an acquire.
//
// The original reads the number of the call from memory, and its first block raises it at its end,
// though other blocks may still have to begin: known_faults.cu, epoch. Here it is an argument.
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

constexpr int kBlocks = 2, kThreads = 64, kQuads = 400, kCalls = 3;

struct Window {
  uint32_t met[kBlocks][kMaxRanks];
  alignas(16) float4 data[kQuads];
};

__device__ bool Behind(uint32_t seen, uint32_t meeting) { return int32_t(seen - meeting) < 0; }

template <bool kShipped>
__device__ void MeetPeers(const Peers<Window>& windows, int rank, int ranks, uint32_t meeting) {
  if (threadIdx.x < ranks) {
    uint32_t* theirs = &windows[threadIdx.x]->met[blockIdx.x][rank];
    uint32_t* ours = &windows[rank]->met[blockIdx.x][threadIdx.x];
    if (kShipped) {
      *theirs = meeting;
      while (Behind(LoadVolatile(ours), meeting)) {
      }
    } else {
      StoreReleaseSys(theirs, meeting);
      while (Behind(LoadAcquireSys(ours), meeting)) {
      }
    }
  }
  __syncthreads();
}

template <bool kShipped>
__global__ void AllReduce(Window* all, Peers<Window> windows, int rank, int ranks, uint32_t call) {
  MeetPeers<kShipped>(windows, rank, ranks, 2 * call + 1);
  const Slice slice = SliceOf(kQuads, rank, ranks);
  for (int i = slice.begin + blockIdx.x * kThreads + threadIdx.x; i < slice.end;
       i += kBlocks * kThreads) {
    float4 v;
    asm volatile("multimem.ld_reduce.weak.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(&all->data[i])
                 : "memory");
    asm volatile("multimem.st.weak.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(&all->data[i]),
                 "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
  }
  __syncthreads();
  if (kShipped) {
    if (threadIdx.x == 0) __threadfence_system();
    __syncthreads();
  }
  MeetPeers<kShipped>(windows, rank, ranks, 2 * call + 2);
}

template <bool kShipped>
void Run(World& world) {
  const Symmetric memory(world, sizeof(Window), true);
  const auto windows = memory.peers<Window>();
  float4* data = windows[world.rank()]->data;
  RunAllReduce(world, "sum", kQuads, kCalls, [&](int call, const float4* input, float4* output) {
    CUDA_CHECK(cudaMemcpyAsync(data, input, sizeof(Window::data), cudaMemcpyDeviceToDevice,
                               world.stream()));
    AllReduce<kShipped><<<kBlocks, kThreads, 0, world.stream()>>>(
        memory.multicast<Window>(), windows, world.rank(), world.ranks(), call);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpyAsync(output, data, sizeof(Window::data), cudaMemcpyDeviceToDevice,
                               world.stream()));
  });
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const bool shipped = Shipped(setup);
  return RunWorld(setup, [=](World& world) { shipped ? Run<true>(world) : Run<false>(world); });
}
