// The waits that CUDA's own libraries offer over devices. barrier: cuda::barrier of system scope in
// the memory of the first device, where one thread of each rank arrives and waits. turns: a
// cuda::atomic that ranks wait for in turn with wait() and notify_all(). permits: a
// cuda::counting_semaphore of which there are fewer than ranks. Between them grids meet by
// grid.sync(), which polls a word that all blocks of a device add to.
//
// run two: --devices 2 | 2 threads
// run four: --devices 4 | 4 threads
// run eight: --devices 8 | 8 threads
#include <cooperative_groups.h>

#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/semaphore>

#include "world.h"

namespace {

constexpr int kBlocks = 2, kThreads = 64, kCount = 500, kCalls = 3;

struct Shared {
  alignas(64) cuda::barrier<cuda::thread_scope_system> barrier;
  alignas(64) cuda::atomic<uint32_t, cuda::thread_scope_system> turn;
  alignas(64) cuda::counting_semaphore<cuda::thread_scope_system, 2> permits;
  alignas(64) cuda::atomic<uint32_t, cuda::thread_scope_system> inside, most;
  uint32_t log[kMaxRanks * kCalls];
  int values[kMaxRanks][kCount];
};

__global__ void Initialise(Shared* shared, int ranks) {
  new (&shared->barrier) cuda::barrier<cuda::thread_scope_system>(ranks);
  new (&shared->turn) cuda::atomic<uint32_t, cuda::thread_scope_system>(0);
  new (&shared->permits) cuda::counting_semaphore<cuda::thread_scope_system, 2>(2);
  new (&shared->inside) cuda::atomic<uint32_t, cuda::thread_scope_system>(0);
  new (&shared->most) cuda::atomic<uint32_t, cuda::thread_scope_system>(0);
}

__global__ void Work(Shared* shared, int rank, int ranks, int call, int* output) {
  const auto grid = cooperative_groups::this_grid();
  const bool leader = grid.thread_rank() == 0;
  for (int i = grid.thread_rank(); i < kCount; i += grid.size())
    shared->values[rank][i] = rank * 1000 + call * 100 + i;
  grid.sync();
  if (leader) shared->barrier.arrive_and_wait();
  grid.sync();
  for (int i = grid.thread_rank(); i < kCount; i += grid.size()) {
    int sum = 0;
    for (int r = 0; r < ranks; ++r) sum += shared->values[r][i];
    output[i] = sum;
  }
  grid.sync();
  if (!leader) return;
  const uint32_t turn = call * ranks + rank;
  for (uint32_t seen = shared->turn.load(cuda::memory_order_acquire); seen != turn;
       seen = shared->turn.load(cuda::memory_order_acquire)) {
    shared->turn.wait(seen, cuda::memory_order_acquire);
  }
  shared->log[turn] = turn == 0 ? 1 : shared->log[turn - 1] + 1;
  shared->turn.store(turn + 1, cuda::memory_order_release);
  shared->turn.notify_all();
  shared->permits.acquire();
  const uint32_t inside = shared->inside.fetch_add(1) + 1;
  shared->most.fetch_max(inside);
  shared->inside.fetch_sub(1);
  shared->permits.release();
  shared->barrier.arrive_and_wait();
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const auto all = world.Share<Shared>();
    Shared* shared = all[0];
    int rank = world.rank(), ranks = world.ranks();
    if (rank == 0) Initialise<<<1, 1, 0, world.stream()>>>(shared, ranks);
    int* outputs = world.Allocate<int>(kCalls * kCount);
    CUDA_CHECK(cudaStreamSynchronize(world.stream()));
    world.Barrier();
    for (int call = 0; call < kCalls; ++call) {
      int* output = outputs + call * kCount;
      void* arguments[] = {&shared, &rank, &ranks, &call, &output};
      CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(Work), dim3(kBlocks),
                                             dim3(kThreads), arguments, 0, world.stream()));
    }
    RequireElements(world, "sum", kCalls, world.Result(outputs, kCalls * kCount), [&](int k) {
      return ranks * (k / kCount * 100 + k % kCount) + 1000 * ranks * (ranks - 1) / 2;
    });
    world.Barrier();
    if (rank == 0) {
      for (int turn = 0; turn < kCalls * ranks; ++turn) {
        const uint32_t got = Fetch(&shared->log[turn]);
        REQUIRE(got == uint32_t(turn + 1), "turn %d: %u", turn, got);
      }
      const uint32_t most = Fetch(reinterpret_cast<const uint32_t*>(&shared->most));
      REQUIRE(most >= 1 && most <= 2, "%u had a permit at once", most);
    }
    world.Barrier();
  });
}
