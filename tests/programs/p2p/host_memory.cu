// Messages between devices through pinned host memory, as where devices cannot reach each other:
// kernels write data and flags there and poll flags there, and the hosts poll there, too.
//
// run 2.threads: | 2 threads
// run 5.threads: | 5 threads
// run 8.threads: | 8 threads
#include "world.h"

namespace {

constexpr int kThreads = 64, kWords = 300, kSlots = 2, kMessages = 8;

struct Lane {  // from a rank to its right neighbour
  uint32_t arrived, taken;
  uint32_t data[kSlots][kWords];
};
struct Board {
  Lane lanes[kMaxRanks];
  uint32_t finished[kMaxRanks];  // written by kernels, read by hosts
};

__host__ __device__ uint32_t Word(int from, uint32_t message, int i) {
  return from * 1000000u + message * 1000u + i;
}

__global__ void Exchange(Board* board, int rank, int ranks, uint32_t* output) {
  Lane* out = &board->lanes[rank];
  Lane* in = &board->lanes[(rank + ranks - 1) % ranks];
  for (uint32_t message = 0; message < kMessages; ++message) {
    if (threadIdx.x == 0) {
      Stumble(rank, message);
      WaitAtLeast(&out->taken, message + 1 - kSlots);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kWords; i += kThreads)
      out->data[message % kSlots][i] = Word(rank, message, i);
    __syncthreads();
    if (threadIdx.x == 0) {
      StoreReleaseSys(&out->arrived, message + 1);
      WaitAtLeast(&in->arrived, message + 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kWords; i += kThreads)
      output[message * kWords + i] = in->data[message % kSlots][i];
    __syncthreads();
    if (threadIdx.x == 0) StoreReleaseSys(&in->taken, message + 1);
  }
  if (threadIdx.x == 0) StoreReleaseSys(&board->finished[rank], rank + 1);
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  Board* board = nullptr;
  CUDA_CHECK(cudaHostAlloc(&board, sizeof(Board), cudaHostAllocPortable | cudaHostAllocMapped));
  std::memset(board, 0, sizeof(Board));
  const int code = RunWorld(setup, [&](World& world) {
    Board* mapped = nullptr;
    CUDA_CHECK(cudaHostGetDevicePointer(&mapped, board, 0));
    uint32_t* output = world.Allocate<uint32_t>(kMessages * kWords);
    Exchange<<<1, kThreads, 0, world.stream()>>>(mapped, world.rank(), world.ranks(), output);
    CUDA_CHECK_LAUNCH();
    // Hosts wait for the right neighbour's kernel by its flag alone.
    while (__atomic_load_n(&board->finished[world.right()], __ATOMIC_ACQUIRE) == 0) {
    }
    RequireElements(world, "word", 0, world.Result(output, kMessages * kWords),
                    [&](int k) { return Word(world.left(), k / kWords, k % kWords); });
    world.Barrier();
    for (int i = 0; i < kWords; ++i)
      REQUIRE(board->lanes[world.left()].data[(kMessages - 1) % kSlots][i] ==
                  Word(world.left(), kMessages - 1, i),
              "rank %d: word %d after the end", world.rank(), i);
  });
  CUDA_CHECK(cudaFreeHost(board));
  return code;
}
