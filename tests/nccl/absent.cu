// A rank is missing at the second all-reduce, or the first. `never`, `first`: the last rank does not
// call it. `dies`: the process of the last rank ends before it would (with `exec --ranks`).
// Usage: absent never|first|dies
#include <nccl.h>

#include <cstring>
#include <vector>

#include "check.h"
#include "nccl_check.h"
#include "store.h"

namespace {

constexpr std::size_t kCount = 1024;

struct Rank {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  float* data = nullptr;
};

Rank Prepare(int device, ncclComm_t comm) {
  Rank rank;
  rank.comm = comm;
  CUDA_CHECK(cudaSetDevice(device));
  CUDA_CHECK(cudaMalloc(&rank.data, kCount * sizeof(float)));
  CUDA_CHECK(cudaStreamCreate(&rank.stream));
  return rank;
}

void AllReduce(const Rank& rank) {
  NCCL_CHECK(
      ncclAllReduce(rank.data, rank.data, kCount, ncclFloat32, ncclSum, rank.comm, rank.stream));
}

void OneProcess(bool first) {
  std::vector<ncclComm_t> comms(2);
  NCCL_CHECK(ncclCommInitAll(comms.data(), 2, nullptr));
  const Rank ranks[] = {Prepare(0, comms[0]), Prepare(1, comms[1])};
  if (!first) {
    NCCL_CHECK(ncclGroupStart());
    for (const Rank& rank : ranks) AllReduce(rank);
    NCCL_CHECK(ncclGroupEnd());
    for (const Rank& rank : ranks) CUDA_CHECK(cudaStreamSynchronize(rank.stream));
  }
  std::puts("once");
  std::fflush(stdout);
  AllReduce(ranks[0]);
  CUDA_CHECK(cudaStreamSynchronize(ranks[0].stream));
}

void Processes() {
  const int number = FromEnvironment("RANK"), world = FromEnvironment("WORLD_SIZE");
  Store store(number, world);
  ncclUniqueId id{};
  if (number == 0) NCCL_CHECK(ncclGetUniqueId(&id));
  id = store.AllGather(id)[0];
  ncclComm_t comm;
  CUDA_CHECK(cudaSetDevice(number));
  NCCL_CHECK(ncclCommInitRank(&comm, world, id, number));
  const Rank rank = Prepare(number, comm);
  AllReduce(rank);
  CUDA_CHECK(cudaStreamSynchronize(rank.stream));
  if (number == 0) std::puts("once");
  std::fflush(stdout);
  if (number == world - 1) std::_Exit(0);
  AllReduce(rank);
  CUDA_CHECK(cudaStreamSynchronize(rank.stream));
}

}  // namespace

int main(int argc, char** argv) {
  const char* who = argc > 1 ? argv[1] : "never";
  std::strcmp(who, "dies") == 0 ? Processes() : OneProcess(std::strcmp(who, "first") == 0);
  std::puts("the all-reduce has ended");
}
