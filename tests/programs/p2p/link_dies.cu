// A link dies while ranks pass messages round a ring, in processes of their own. Who uses the link
// gets cudaErrorNvlinkUncorrectable, and so does every later call; who does not use it misses a
// message within a bounded time, and can go on working. Ends only if the link of device 1 dies.
//
// finds: use_after_free api_error
// run 3.processes: --fault link:gpu1-nvswitch=dead@2ms | 3 processes
// run 5.processes: --fault gpu:gpu1=dead@3ms | 5 processes
// faults: links that the kernels use are dead
#include "world.h"

namespace {

constexpr int kThreads = 64, kWords = 256, kMostRounds = 5000, kBroken = 1;
constexpr uint64_t kPatience = 20'000'000;  // nanoseconds

// Round the ring a rank learns of its right neighbour last: it may be ahead of it by as many rounds
// as there are ranks.
struct Inbox {
  uint32_t round;
  uint32_t data[kMaxRanks][kWords];
};

__host__ __device__ uint32_t Word(int from, uint32_t round, int i) {
  return from * 77777u + round * 333u + i;
}

// Sets `missing` if the left neighbour's message of this round does not come.
__global__ void Pass(Inbox* mine, Inbox* right, int rank, int left, uint32_t round,
                     uint32_t* missing, uint32_t* wrong) {
  for (int i = threadIdx.x; i < kWords; i += kThreads)
    right->data[round % kMaxRanks][i] = Word(rank, round, i);
  __syncthreads();
  __shared__ bool here;
  if (threadIdx.x == 0) {
    StoreReleaseSys(&right->round, round + 1);
    const uint64_t deadline = GlobalTimer() + kPatience;
    while (LoadAcquireSys(&mine->round) < round + 1 && GlobalTimer() < deadline) {
    }
    here = LoadAcquireSys(&mine->round) >= round + 1;
    if (!here) *missing = 1;
  }
  __syncthreads();
  if (!here) return;
  for (int i = threadIdx.x; i < kWords; i += kThreads) {
    if (mine->data[round % kMaxRanks][i] != Word(left, round, i)) atomicAdd(wrong, 1);
  }
}

__global__ void Fill(uint32_t* data) { data[threadIdx.x] = threadIdx.x + 1; }

void Run(World& world) {
  const int rank = world.rank(), left = world.left();
  const auto inboxes = world.Share<Inbox>();
  uint32_t* results = world.Allocate<uint32_t>(2 + kThreads);
  cudaError_t error = cudaSuccess;
  uint32_t found[2] = {};  // missing, wrong
  // Who was only waiting when its link died has yet to use it.
  const bool uses_link = rank == kBroken || world.right() == kBroken;
  for (uint32_t round = 0;
       round < kMostRounds && error == cudaSuccess && (found[0] == 0 || uses_link); ++round) {
    Pass<<<1, kThreads, 0, world.stream()>>>(inboxes[rank], inboxes[world.right()], rank, left,
                                             round, results, results + 1);
    error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaStreamSynchronize(world.stream());
    if (error == cudaSuccess)
      error = cudaMemcpy(found, results, sizeof found, cudaMemcpyDeviceToHost);
    REQUIRE(found[1] == 0, "rank %d, round %u: %u wrong words", rank, round, found[1]);
  }
  if (uses_link) {
    REQUIRE(error == cudaErrorNvlinkUncorrectable, "rank %d: %s", rank, cudaGetErrorName(error));
    CUDA_EXPECT(cudaErrorNvlinkUncorrectable, cudaDeviceSynchronize());
    std::_Exit(0);  // nothing works any more in this process
  }
  CUDA_CHECK(error);
  REQUIRE(found[0] == 1, "rank %d: no message is missing after %d rounds", rank, kMostRounds);
  Fill<<<1, kThreads, 0, world.stream()>>>(results + 2);
  CUDA_CHECK_LAUNCH();
  RequireElements(world, "word", 0, world.Result(results + 2, kThreads),
                  [](int i) { return uint32_t(i + 1); });
  world.Lose(kBroken);
  world.Lose((kBroken + world.ranks() - 1) % world.ranks());
}

}  // namespace

int main(int argc, char** argv) { return RunWorld(argc, argv, Run); }
