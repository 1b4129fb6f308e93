// A pipeline over all devices whose last stage feeds the first again: microbatches pass every stage
// several times. Each stage has a bounded inbox; a sender waits for a free slot, which the receiver
// returns as a credit. Stage 0 takes a new microbatch only when it has room, so that the ring never
// fills up and stops.
//
// run 2.threads: | 2 threads
// run 3.processes: | 3 processes
// run 5.threads: | 5 threads
// run 8.processes: | 8 processes
#include "world.h"

namespace {

constexpr int kThreads = 64, kWidth = 200, kSlots = 2, kBatches = 13, kLaps = 3;

struct Message {
  uint32_t batch, lap;
  uint32_t data[kWidth];
};
struct Inbox {
  uint32_t arrived;  // messages from the left
  uint32_t credits;  // messages that the right has taken from its inbox
  Message slots[kSlots];
};

__host__ __device__ uint32_t Stage(uint32_t value, int stage, uint32_t lap, int i) {
  return value * (2 * stage + 3) + lap * 17 + i;
}
__host__ __device__ uint32_t Start(uint32_t batch, int i) { return batch * 1000 + i; }

__global__ void Run(Peers<Inbox> inboxes, int rank, int ranks, uint32_t* results) {
  Inbox* mine = inboxes[rank];
  Inbox* right = inboxes[(rank + 1) % ranks];
  Inbox* left = inboxes[(rank + ranks - 1) % ranks];
  uint32_t received = 0, sent = 0, started = 0, in_ring = 0;
  const uint32_t total = kBatches * kLaps;
  // Everyone would wait for everyone if all inboxes were full; they hold twice as many.
  const uint32_t most = ranks;

  const auto forward = [&](const uint32_t* data, uint32_t batch, uint32_t lap) {
    if (threadIdx.x == 0) WaitAtLeast(&mine->credits, sent + 1 - kSlots);
    __syncthreads();
    Message* to = &right->slots[sent % kSlots];
    for (int i = threadIdx.x; i < kWidth; i += kThreads) {
      const uint32_t value = data == nullptr ? Start(batch, i) : data[i];
      to->data[i] = Stage(value, rank, lap, i);
    }
    if (threadIdx.x == 0) {
      to->batch = batch;
      to->lap = lap;
    }
    __syncthreads();
    ++sent;
    if (threadIdx.x == 0) StoreReleaseSys(&right->arrived, sent);
  };

  for (uint32_t step = 0; step < total; ++step) {
    // Stage 0 starts batches while there is room; all others only pass on.
    while (rank == 0 && started < kBatches && in_ring < most) {
      forward(nullptr, started, 0);
      ++started;
      ++in_ring;
    }
    if (threadIdx.x == 0) WaitAtLeast(&mine->arrived, received + 1);
    if (threadIdx.x == 0) Stumble(rank, received);
    __syncthreads();
    const Message* from = &mine->slots[received % kSlots];
    const uint32_t batch = from->batch, lap = from->lap + (rank == 0);
    if (lap == kLaps) {  // stage 0 again after the last lap
      for (int i = threadIdx.x; i < kWidth; i += kThreads)
        results[batch * kWidth + i] = from->data[i];
      --in_ring;
    } else {
      forward(from->data, batch, lap);
    }
    __syncthreads();
    ++received;
    if (threadIdx.x == 0) StoreReleaseSys(&left->credits, received);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const auto inboxes = world.Share<Inbox>();
    uint32_t* results = world.Allocate<uint32_t>(kBatches * kWidth);
    Run<<<1, kThreads, 0, world.stream()>>>(inboxes, world.rank(), world.ranks(), results);
    CUDA_CHECK_LAUNCH();
    RequireElements(world, "result", 0, world.Result(results, kBatches * kWidth), [&](int k) {
      if (world.rank() != 0) return 0u;
      uint32_t value = Start(k / kWidth, k % kWidth);
      for (uint32_t lap = 0; lap < kLaps; ++lap) {
        for (int stage = 0; stage < world.ranks(); ++stage)
          value = Stage(value, stage, lap, k % kWidth);
      }
      return value;
    });
  });
}
