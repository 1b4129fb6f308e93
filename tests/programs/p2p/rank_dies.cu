// A rank is killed in the middle of a collective, with a kernel of its own still running. The
// others wait for it with a bound on time, agree on who is missing, find its process gone, and go
// on without it: the next all-reduces are over the survivors. It kills itself, or, with "outside",
// somebody else must do so within the others' patience.
//
// unchecked: under some schedules the others store to the dead rank's memory after it is gone
// run 2.processes: | 2 processes
// run 3.processes: | 3 processes
// run 5.processes: | 5 processes
// run 8.processes: | 8 processes
// run outside.3.processes: --fault rank:2=dead@50ms | 3 processes outside
#include "world.h"

namespace {

constexpr int kThreads = 128, kCount = 500, kBefore = 2, kAfter = 3;
constexpr uint64_t kPatience = 200'000'000;  // nanoseconds

struct Memory {
  uint32_t reached[kMaxRanks];
  int slots[2][kMaxRanks][kCount];
};

int Input(int rank, int call, int i) { return rank * 10007 + call * 101 + i; }

// Sums over the ranks in `members`. Returns in `missing` those which did not come in time, and then
// leaves the output alone.
__global__ void AllReduce(Peers<Memory> memory, int rank, uint32_t members, uint32_t epoch,
                          const int* input, int* output, uint32_t* missing) {
  __shared__ uint32_t late;
  if (threadIdx.x == 0) late = 0;
  for (int r = 0; r < kMaxRanks; ++r) {
    if ((members >> r & 1) == 0) continue;
    for (int i = threadIdx.x; i < kCount; i += kThreads)
      memory[r]->slots[epoch & 1][rank][i] = input[i];
  }
  __syncthreads();
  if (threadIdx.x < kMaxRanks && (members >> threadIdx.x & 1) != 0) {
    StoreReleaseSys(&memory[threadIdx.x]->reached[rank], epoch);
    const uint64_t deadline = GlobalTimer() + kPatience;
    while (LoadAcquireSys(&memory[rank]->reached[threadIdx.x]) < epoch) {
      if (GlobalTimer() > deadline) {
        atomicOr(&late, 1u << threadIdx.x);
        break;
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) *missing = late;
  if (late != 0) return;
  for (int i = threadIdx.x; i < kCount; i += kThreads) {
    int sum = 0;
    for (int r = 0; r < kMaxRanks; ++r) {
      if ((members >> r & 1) != 0) sum += memory[rank]->slots[epoch & 1][r][i];
    }
    output[i] = sum;
  }
}

// The victim's last call: it sends half of its data to everyone and then hangs.
__global__ void HalfAndHang(Peers<Memory> memory, int rank, int ranks, uint32_t epoch) {
  for (int r = 0; r < ranks; ++r) {
    for (int i = threadIdx.x; i < kCount / 2; i += kThreads)
      memory[r]->slots[epoch & 1][rank][i] = -1;
  }
  if (threadIdx.x == 0) {
    while (LoadAcquireSys(&memory[rank]->reached[rank]) != ~0u) {
    }
  }
}

void Run(World& world, int victim, bool outside) {
  const int rank = world.rank(), ranks = world.ranks();
  const auto memory = world.Share<Memory>();
  int* input = world.Allocate<int>(kCount);
  int* output = world.Allocate<int>(kCount);
  uint32_t* missing = world.Allocate<uint32_t>();
  uint32_t members = (1u << ranks) - 1, epoch = 0;

  const auto call = [&]() -> uint32_t {
    ++epoch;
    std::vector<int> words;
    for (int i = 0; i < kCount; ++i) words.push_back(Input(rank, epoch, i));
    Upload(input, words.data(), words.size());
    AllReduce<<<1, kThreads, 0, world.stream()>>>(memory, rank, members, epoch, input, output,
                                                  missing);
    CUDA_CHECK_LAUNCH();
    return world.Result(missing, 1)[0];
  };
  const auto check = [&] {
    RequireElements(world, "sum", epoch, world.Result(output, kCount), [&](int i) {
      int sum = 0;
      for (int r = 0; r < ranks; ++r) {
        if ((members >> r & 1) != 0) sum += Input(r, epoch, i);
      }
      return sum;
    });
  };
  for (int i = 0; i < kBefore; ++i) {
    REQUIRE(call() == 0, "rank %d: somebody is late in call %u", rank, epoch);
    check();
  }
  if (rank == victim) {
    HalfAndHang<<<1, kThreads, 0, world.stream()>>>(memory, rank, ranks, epoch + 1);
    CUDA_CHECK_LAUNCH();
    usleep(1000);
    CUDA_EXPECT(cudaErrorNotReady, cudaStreamQuery(world.stream()));
    if (outside) CUDA_CHECK(cudaStreamSynchronize(world.stream()));
    kill(getpid(), SIGKILL);
  }
  const uint32_t late = call();
  REQUIRE(late == 1u << victim, "rank %d: missing are %x, expected %x", rank, late, 1u << victim);
  world.Lose(victim);
  members &= ~late;
  for (uint32_t others : world.AllGather(late))
    REQUIRE(others == late, "rank %d: others miss %x", rank, others);
  for (int i = 0; i < kAfter; ++i) {
    REQUIRE(call() == 0, "rank %d: somebody is late in call %u", rank, epoch);
    check();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const int victim = setup.ranks / 2;
  const bool outside = setup.scheme == "outside";
  return RunWorld(setup, [=](World& world) { Run(world, victim, outside); }, victim);
}
