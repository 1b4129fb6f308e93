// Barriers over devices, used hundreds of times within one kernel and on over several launches:
// central (arrivals counted by atomics on rank 0, which opens the next phase for all) and
// dissemination (log2 n rounds of flags to the rank 2^k further). Between barriers everyone shifts
// values to its right neighbour, so that a barrier which opens early or late shows.
//
// run central.2.processes: | 2 processes central
// run central.3.threads: | 3 threads central
// run central.8.processes: | 8 processes central
// run dissemination.2.threads: | 2 threads dissemination
// run dissemination.5.processes: | 5 processes dissemination
// run dissemination.7.threads: | 7 threads dissemination
// run dissemination.8.mixed: | 8 mixed dissemination
#include "world.h"

namespace {

constexpr int kThreads = 64, kRounds = 60, kLaunches = 3, kLevels = 3;

struct Board {
  uint32_t arrivals;       // central: on rank 0, of all phases
  uint32_t open;           // the phase that may go on
  uint32_t from[kLevels];  // dissemination: the last phase of the sender of each level
  uint32_t values[kThreads];
};

__device__ uint32_t FetchAddSys(uint32_t* counter, uint32_t value) {
  uint32_t before;
  asm volatile("atom.acq_rel.sys.global.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(counter), "r"(value)
               : "memory");
  return before;
}

// Phases count from 1 and never start again.
__device__ void Central(Peers<Board> boards, int rank, int ranks, uint32_t phase) {
  __syncthreads();
  if (threadIdx.x == 0) {
    if (FetchAddSys(&boards[0]->arrivals, 1) == phase * ranks - 1) {
      for (int r = 0; r < ranks; ++r) StoreReleaseSys(&boards[r]->open, phase);
    }
    WaitAtLeast(&boards[rank]->open, phase);
  }
  __syncthreads();
}

__device__ void Dissemination(Peers<Board> boards, int rank, int ranks, uint32_t phase) {
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int level = 0; 1 << level < ranks; ++level) {
      StoreReleaseSys(&boards[(rank + (1 << level)) % ranks]->from[level], phase);
      WaitAtLeast(&boards[rank]->from[level], phase);
    }
  }
  __syncthreads();
}

__global__ void Shift(Peers<Board> boards, int rank, int ranks, uint32_t phase, bool central) {
  const auto sync = [&] {
    ++phase;
    central ? Central(boards, rank, ranks, phase) : Dissemination(boards, rank, ranks, phase);
  };
  for (int round = 0; round < kRounds; ++round) {
    if (threadIdx.x == 0) Stumble(rank, phase);
    __syncthreads();
    const uint32_t value = boards[rank]->values[threadIdx.x];
    sync();
    if (threadIdx.x == 0) Stumble(rank, phase);
    __syncthreads();
    boards[(rank + 1) % ranks]->values[threadIdx.x] = value + threadIdx.x + 1;
    sync();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  return RunWorld(setup, [&](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    const auto boards = world.Share<Board>();
    const std::vector<uint32_t> start(kThreads, 1000000 * rank);
    Upload(boards[rank]->values, start.data(), start.size());
    world.Barrier();
    for (int launch = 0; launch < kLaunches; ++launch) {
      Shift<<<1, kThreads, 0, world.stream()>>>(boards, rank, ranks, launch * kRounds * 2,
                                                setup.scheme == "central");
      CUDA_CHECK_LAUNCH();
    }
    constexpr int kShifts = kLaunches * kRounds;
    const int origin = ((rank - kShifts) % ranks + ranks) % ranks;
    RequireElements(world, "value", 0, world.Result(boards[rank]->values, kThreads),
                    [&](int i) { return uint32_t(1000000 * origin + kShifts * (i + 1)); });
  });
}
