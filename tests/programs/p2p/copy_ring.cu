// A ring of peer copies ordered by events alone, no kernel waits: in each step everyone works on
// its buffer and copies it to the right. A stream waits for the left neighbour's "sent" (its copy
// into our inbox is done) and for the right one's "free" (it no longer needs what our last copy
// brought). Between processes the events are IPC events.
//
// An event is waited for only after it has been recorded, which the hosts make sure of by a barrier
// per step; the devices run behind.
//
// run 2.threads: | 2 threads
// run 2.processes: | 2 processes
// run 3.processes: | 3 processes
// run 5.threads: | 5 threads
// run 4.mixed: | 4 mixed
// run 8.processes: | 8 processes
#include "world.h"

namespace {

constexpr int kCount = 4096, kThreads = 256, kSteps = 9;
constexpr size_t kBytes = kCount * sizeof(uint32_t);

// Not commutative: the order of ranks shows.
__host__ __device__ uint32_t Mix(uint32_t value, int rank, int i) {
  return value * 1664525u + rank * 40503u + i;
}

__global__ void Work(const uint32_t* inbox, uint32_t* outbox, int rank) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  outbox[i] = Mix(inbox[i], rank, i);
}

__global__ void Idle(int rank, int step) { Stumble(rank, step); }

struct Events {
  cudaEvent_t sent, free;
};

// The events of rank `of`, as this rank sees them.
Events Show(World& world, const Events& mine, int of) {
  struct Card {
    Events events;
    cudaIpcEventHandle_t sent, free;
  } card;
  card.events = mine;
  CUDA_CHECK(cudaIpcGetEventHandle(&card.sent, mine.sent));
  CUDA_CHECK(cudaIpcGetEventHandle(&card.free, mine.free));
  card = world.AllGather(card)[of];
  if (world.SameProcess(of)) return card.events;
  Events theirs;
  CUDA_CHECK(cudaIpcOpenEventHandle(&theirs.sent, card.sent));
  CUDA_CHECK(cudaIpcOpenEventHandle(&theirs.free, card.free));
  return theirs;
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    cudaStream_t stream = world.stream();
    const auto inboxes = world.Share<uint32_t>(kCount);
    uint32_t* outbox = world.Allocate<uint32_t>(kCount);
    std::vector<uint32_t> start;
    for (int i = 0; i < kCount; ++i) start.push_back(rank * 1000000 + i);
    Upload(inboxes[rank], start.data(), start.size());

    Events mine;
    constexpr unsigned kFlags = cudaEventInterprocess | cudaEventDisableTiming;
    CUDA_CHECK(cudaEventCreateWithFlags(&mine.sent, kFlags));
    CUDA_CHECK(cudaEventCreateWithFlags(&mine.free, kFlags));
    const Events left = Show(world, mine, world.left()), right = Show(world, mine, world.right());
    for (int step = 0; step < kSteps; ++step) {
      Idle<<<1, 1, 0, stream>>>(rank, step);
      Work<<<kCount / kThreads, kThreads, 0, stream>>>(inboxes[rank], outbox, rank);
      CUDA_CHECK_LAUNCH();
      CUDA_CHECK(cudaEventRecord(mine.free, stream));
      world.Barrier();
      CUDA_CHECK(cudaStreamWaitEvent(stream, right.free, 0));
      CUDA_CHECK(cudaMemcpyAsync(inboxes[world.right()], outbox, kBytes, cudaMemcpyDeviceToDevice,
                                 stream));
      CUDA_CHECK(cudaEventRecord(mine.sent, stream));
      world.Barrier();
      CUDA_CHECK(cudaStreamWaitEvent(stream, left.sent, 0));
    }
    RequireElements(world, "word", kSteps, world.Result(inboxes[rank], kCount), [&](int i) {
      const int origin = ((rank - kSteps) % ranks + ranks) % ranks;
      uint32_t value = origin * 1000000 + i;
      for (int step = 0; step < kSteps; ++step) value = Mix(value, (origin + step) % ranks, i);
      return value;
    });
    world.Barrier();
    const auto close = [&](int peer, const Events& theirs) {
      if (world.SameProcess(peer)) return;
      CUDA_CHECK(cudaEventDestroy(theirs.sent));
      CUDA_CHECK(cudaEventDestroy(theirs.free));
    };
    close(world.left(), left);
    close(world.right(), right);
    world.Barrier();
    CUDA_CHECK(cudaEventDestroy(mine.sent));
    CUDA_CHECK(cudaEventDestroy(mine.free));
  });
}
