// Sharing by the virtual memory API: every rank creates physical memory, passes handles to all
// others (file descriptors, or fabric handles between hosts) and maps theirs. Kernels write to the
// right neighbour through such a mapping; the same memory mapped at a second address shows the same
// bytes; what is unmapped and mapped again has kept them; an importer keeps the memory when its
// owner has released it.
//
// run 2.threads: | 2 threads
// run 3.processes: | 3 processes
// run 4.mixed: | 4 mixed
// run 8.processes: | 8 processes
// run fabric.2.launched: --profile gb200nvl72 --ranks 2 --ranks-per-host 1 | 2 launched
// run fabric.8.launched: --profile gb200nvl72 --ranks 8 | 8 launched
#include "symmetric.h"

namespace {

constexpr int kCount = 3000, kCalls = 3;

struct Window {
  uint32_t round;
  uint32_t data[kCount];
};

__host__ __device__ uint32_t Word(int rank, int call, int i) {
  return rank * 1000003u + call * 7919u + i;
}

__global__ void PutRight(Window* right, int rank, uint32_t call) {
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) right->data[i] = Word(rank, call, i);
  __syncthreads();
  if (threadIdx.x == 0) StoreReleaseSys(&right->round, call + 1);
}
__global__ void WaitLeft(const Window* mine, uint32_t call) { WaitAtLeast(&mine->round, call + 1); }

void PutRound(World& world) {
  const Symmetric window(world, sizeof(Window), false);
  const auto windows = window.peers<Window>();
  for (int call = 0; call < kCalls; ++call) {
    PutRight<<<1, 256, 0, world.stream()>>>(windows[world.right()], world.rank(), call);
    WaitLeft<<<1, 1, 0, world.stream()>>>(windows[world.rank()], call);
    CUDA_CHECK_LAUNCH();
    RequireElements(world, "word", call, world.Result(windows[world.rank()]->data, kCount),
                    [&](int i) { return Word(world.left(), call, i); });
    world.Barrier();  // read everywhere before the next round
  }
}

void KeepMemory(World& world) {
  const int rank = world.rank();
  const CUmemAllocationProp properties = MemoryOf(world);
  size_t size = 0;
  DRIVER_CHECK(
      DRIVER(cuMemGetAllocationGranularity)(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUmemGenericAllocationHandle memory;
  DRIVER_CHECK(DRIVER(cuMemCreate)(&memory, size, &properties, 0));
  const CUdeviceptr first = MapFor(world.device(), memory, size);
  const CUdeviceptr second = MapFor(world.device(), memory, size);
  auto* at_first = reinterpret_cast<Window*>(first);
  auto* at_second = reinterpret_cast<Window*>(second);
  PutRight<<<1, 256, 0, world.stream()>>>(at_first, rank, 7);
  CUDA_CHECK_LAUNCH();
  RequireElements(world, "second address", 0, world.Result(at_second->data, kCount),
                  [&](int i) { return Word(rank, 7, i); });

  SendHandle(world, world.right(), memory);
  const CUmemGenericAllocationHandle lefts = ReceiveHandle(world, world.left());
  world.Barrier();
  Unmap(first, size);
  Unmap(second, size);
  DRIVER_CHECK(DRIVER(cuMemRelease)(memory));
  world.Barrier();  // no owner has a handle or a mapping any more
  for (int i = 0; i < 2; ++i) {
    const CUdeviceptr address = MapFor(world.device(), lefts, size);
    const auto* window = reinterpret_cast<const Window*>(address);
    RequireElements(world, "left's memory", i, world.Result(window->data, kCount),
                    [&](int k) { return Word(world.left(), 7, k); });
    Unmap(address, size);
  }
  DRIVER_CHECK(DRIVER(cuMemRelease)(lefts));
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    PutRound(world);
    KeepMemory(world);
  });
}
