// Work stealing across devices: every rank has a queue of tasks, most of them on rank 0. Blocks
// take tasks from their own queue and, when it is empty, from the others', by an atomic on the
// queue's head. Results go to the task's home. Each task must be done exactly once, and each block
// must see the end.
//
// run 2.threads: | 2 threads
// run 3.processes: | 3 processes
// run 5.threads: | 5 threads
// run 8.processes: | 8 processes
#include "world.h"

namespace {

constexpr int kBlocks = 2, kThreads = 32, kMost = 160, kCalls = 3;

struct Queue {
  uint32_t head[kCalls];
  uint32_t size;
  uint32_t done[kCalls][kMost];  // times each task was executed
  uint32_t result[kCalls][kMost];
  uint32_t tasks[kMost];
};

uint32_t Tasks(int rank) { return rank == 0 ? kMost : 5 * rank; }
uint32_t Task(int rank, uint32_t i) { return rank * 1000 + i; }

// More work for some tasks than for others.
__host__ __device__ uint32_t Execute(uint32_t task, int lane) {
  uint32_t value = task + lane;
  for (uint32_t i = 0; i < task % 23; ++i) value = value * 1664525u + 1013904223u;
  return value;
}

__global__ void Steal(Peers<Queue> queues, Peers<Meeting<kBlocks>> meeting, int rank, int ranks,
                      int call, uint32_t* stolen) {
  Meet(meeting, rank, ranks, call + 1);  // or rank 0 might be done before the others have started
  for (int step = 0; step < ranks; ++step) {
    Queue* queue = queues[(rank + step) % ranks];
    const uint32_t size = queue->size;
    for (;;) {
      uint32_t i = 0;
      if (threadIdx.x == 0) i = atomicAdd_system(&queue->head[call], 1);
      i = __shfl_sync(~0u, i, 0);
      if (i >= size) break;
      uint32_t value = Execute(queue->tasks[i], threadIdx.x);
      for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(~0u, value, lane);
      if (threadIdx.x == 0) {
        queue->result[call][i] = value;
        atomicAdd_system(&queue->done[call][i], 1);
        if (step > 0) atomicAdd(stolen, 1);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    const auto queues = world.Share<Queue>();
    const auto meeting = world.Share<Meeting<kBlocks>>();
    uint32_t* stolen = world.Allocate<uint32_t>();
    std::vector<uint32_t> tasks;
    const uint32_t size = Tasks(rank);
    for (uint32_t i = 0; i < size; ++i) tasks.push_back(Task(rank, i));
    Upload(queues[rank]->tasks, tasks.data(), size);
    Upload(&queues[rank]->size, &size, 1);
    world.Barrier();
    for (int call = 0; call < kCalls; ++call) {
      Steal<<<kBlocks, kThreads, 0, world.stream()>>>(queues, meeting, rank, ranks, call, stolen);
      CUDA_CHECK_LAUNCH();
    }
    const uint32_t mine = world.Result(stolen, 1)[0];
    world.Barrier();  // others may still have been at work on this rank's tasks
    const Queue queue = Fetch(queues[rank]);
    for (int call = 0; call < kCalls; ++call) {
      for (uint32_t i = 0; i < size; ++i) {
        uint32_t expected = 0;
        for (int lane = 0; lane < kThreads; ++lane) expected += Execute(Task(rank, i), lane);
        REQUIRE(queue.done[call][i] == 1, "rank %d, call %d, task %u: done %u times", rank, call, i,
                queue.done[call][i]);
        REQUIRE(queue.result[call][i] == expected, "rank %d, call %d, task %u: %u, expected %u",
                rank, call, i, queue.result[call][i], expected);
      }
    }
    // Rank 0 has far more work than the others, so they must have helped.
    uint32_t all = 0;
    for (uint32_t count : world.AllGather(mine)) all += count;
    REQUIRE(all > 0, "nobody stole");
  });
}
