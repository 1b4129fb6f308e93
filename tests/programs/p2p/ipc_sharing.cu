// Sharing by IPC handles in all the ways programs do: several tensors as offsets into one
// allocation, a handle opened twice at once, and opened and closed again and again while its owner
// changes the contents. The process that made a handle cannot open it.
//
// run 2.processes: | 2 processes
// run 3.processes: | 3 processes
// run 8.processes: | 8 processes
// finds: api_error
#include "world.h"

namespace {

constexpr int kCount = 1024, kRounds = 4;

__global__ void Fill(int* data, int value) { data[threadIdx.x] = value + threadIdx.x; }
__global__ void AddInto(int* to, const int* from) { to[threadIdx.x] += from[threadIdx.x]; }

cudaIpcMemHandle_t HandleOf(void* memory) {
  cudaIpcMemHandle_t handle;
  CUDA_CHECK(cudaIpcGetMemHandle(&handle, memory));
  return handle;
}

int* Open(const cudaIpcMemHandle_t& handle) {
  void* memory = nullptr;
  CUDA_CHECK(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
  return static_cast<int*>(memory);
}

void Share(World& world) {
  const int rank = world.rank(), left = world.left(), right = world.right();
  int* pool = world.Allocate<int>(4 * kCount);
  // A handle names the whole allocation; where in it the tensors are is told apart.
  struct Card {
    cudaIpcMemHandle_t pool;
    int tensor, sums;
  };
  const Card mine{HandleOf(pool), rank % 4 * kCount, (rank + 2) % 4 * kCount};
  const std::vector<Card> cards = world.AllGather(mine);

  void* own = nullptr;
  REQUIRE(cudaIpcOpenMemHandle(&own, mine.pool, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess,
          "rank %d opened its own handle", rank);
  cudaGetLastError();

  const auto value = [](int of, int round, int i) { return 100000 * (of + 1) + 2000 * round + i; };
  for (int round = 0; round < kRounds; ++round) {
    Fill<<<1, kCount, 0, world.stream()>>>(pool + mine.tensor, value(rank, round, 0));
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaStreamSynchronize(world.stream()));
    world.Barrier();
    int* theirs = Open(cards[right].pool);
    RequireElements(world, "neighbour's tensor", round,
                    world.Result(theirs + cards[right].tensor, kCount),
                    [&](int i) { return value(right, round, i); });
    // Opened again, the same mapping is returned and counted: one close leaves it usable.
    int* again = Open(cards[right].pool);
    REQUIRE(again == theirs, "rank %d: a second mapping", rank);
    CUDA_CHECK(cudaIpcCloseMemHandle(again));
    AddInto<<<1, kCount, 0, world.stream()>>>(theirs + cards[right].sums, pool + mine.tensor);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaStreamSynchronize(world.stream()));
    CUDA_CHECK(cudaIpcCloseMemHandle(theirs));
    world.Barrier();
    RequireElements(world, "sums", round, world.Result(pool + mine.sums, kCount), [&](int i) {
      int sum = 0;
      for (int r = 0; r <= round; ++r) sum += value(left, r, i);
      return sum;
    });
  }
}

}  // namespace

int main(int argc, char** argv) { return RunWorld(argc, argv, Share); }
