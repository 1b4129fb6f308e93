// All-reduce between ranks that a launcher has started and told who they are (RANK, WORLD_SIZE,
// LOCAL_RANK, MASTER_ADDR, MASTER_PORT): IPC handles are exchanged over TCP, as frameworks do
// without MPI; then each rank sums what all ranks of its host have.
//
// run 3: --ranks 3
// run 8: --ranks 8
// run two_hosts: --profile h100x8x2-ib --devices 3 --ranks 6
// run network: --profile h100x8x2-ib --ranks 16
// run nvl72: --profile gb200nvl72 --ranks 72
// finds: api_error
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "flags.h"
#include "store.h"

namespace {

constexpr int kMaxRanks = 128;
constexpr int kThreads = 128;
constexpr int kCount = 1000;

struct Card {
  char host[32];
  cudaIpcMemHandle_t memory;
};

struct Shared {
  uint32_t arrived[kMaxRanks];
  int values[kCount];
};

struct Peers {
  Shared* rank[kMaxRanks];  // of one host
};

__global__ void Sum(Peers peers, int rank, int ranks, int* output) {
  if (threadIdx.x < ranks) {
    StoreReleaseSys(&peers.rank[threadIdx.x]->arrived[rank], 1);
    while (LoadAcquireSys(&peers.rank[rank]->arrived[threadIdx.x]) == 0) {
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kCount; i += kThreads) {
    int sum = 0;
    for (int r = 0; r < ranks; ++r) sum += peers.rank[r]->values[i];
    output[i] = sum;
  }
}

}  // namespace

int main() {
  const int rank = FromEnvironment("RANK"), ranks = FromEnvironment("WORLD_SIZE");
  const int local = FromEnvironment("LOCAL_RANK"), beside = FromEnvironment("LOCAL_WORLD_SIZE");
  RequireDevices(beside);
  Shared* mine = ZeroedOn<Shared>(local);
  int* output = ZeroedOn<int>(local, kCount);
  std::vector<int> values(kCount);
  for (int i = 0; i < kCount; ++i) values[i] = rank * 1009 + i;
  Upload(mine->values, values.data(), kCount);

  Store store(rank, ranks);
  Card own{};
  gethostname(own.host, sizeof own.host);
  CUDA_CHECK(cudaIpcGetMemHandle(&own.memory, mine));
  const std::vector<Card> cards = store.AllGather(own);
  Peers peers{};
  int found = 0, first = -1;
  for (int r = 0; r < ranks; ++r) {
    void* opened = mine;
    if (std::strcmp(cards[r].host, own.host) != 0) {
      REQUIRE(cudaIpcOpenMemHandle(&opened, cards[r].memory, cudaIpcMemLazyEnablePeerAccess) !=
                  cudaSuccess,
              "rank %d opened memory of another host", rank);
      cudaGetLastError();
      continue;
    }
    if (r != rank)
      CUDA_CHECK(cudaIpcOpenMemHandle(&opened, cards[r].memory, cudaIpcMemLazyEnablePeerAccess));
    if (first < 0) first = r;
    peers.rank[found++] = static_cast<Shared*>(opened);
  }
  REQUIRE(found == beside && first == rank - local, "%d ranks on %s, the first is %d", found,
          own.host, first);

  Sum<<<1, kThreads>>>(peers, local, beside, output);
  CUDA_CHECK_LAUNCH();
  std::vector<int> got(kCount);
  CUDA_CHECK(cudaMemcpy(got.data(), output, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    int expected = 0;
    for (int r = first; r < first + beside; ++r) expected += r * 1009 + i;
    REQUIRE(got[i] == expected, "rank %d, element %d: got %d, expected %d", rank, i, got[i],
            expected);
  }
  store.AllGather(0);  // memory may be freed only after everybody has read it
  if (rank == 0) std::printf("PASS allreduce_tcp: %d ranks\n", ranks);
  return 0;
}
