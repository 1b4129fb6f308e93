// Four ranks on two hosts, as `mpirun` or a rank's number places them: each sees two devices and
// the name of its host; an IPC handle works on the same host and is refused on the other.
//
// run by_rank: --profile h100x8x2-ib --devices 2 | -n 4
// run by_name: --profile h100x8x2-ib --devices 2 | --host node0:2,node1:2 -n 4
// run by_node: --profile h100x8x2-ib --devices 2 | --host node0:2,node1:2 --map-by node -n 4
// finds: api_error
#include <mpi.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "check.h"

namespace {

struct Card {
  char host[32];
  char boot[40];
  unsigned char uuid[16];
  int device;
  cudaIpcMemHandle_t memory;
};

__global__ void Store(int* to, int value) { *to = value; }

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  REQUIRE(ranks == 4, "%d ranks", ranks);
  int devices = 0;
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  REQUIRE(devices == 2, "rank %d sees %d devices", rank, devices);

  Card own{};
  gethostname(own.host, sizeof own.host);
  FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r");
  REQUIRE(file != nullptr && std::fread(own.boot, 1, 36, file) == 36, "no boot id");
  std::fclose(file);
  // The ranks of a host share its devices in the order of their ranks.
  std::vector<Card> cards(ranks);
  MPI_Allgather(&own, sizeof own, MPI_BYTE, cards.data(), sizeof own, MPI_BYTE, MPI_COMM_WORLD);
  int beside = 0;
  for (int r = 0; r < ranks; ++r) {
    const bool same = std::strcmp(cards[r].host, own.host) == 0;
    REQUIRE(same == (std::strcmp(cards[r].boot, own.boot) == 0), "names and boot ids disagree");
    beside += same;
    if (r < rank) own.device += same;
  }
  REQUIRE(beside == 2, "%d ranks on %s", beside, own.host);
  int* memory = ZeroedOn<int>(own.device, ranks);
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, own.device));
  std::memcpy(own.uuid, &properties.uuid, 16);
  CUDA_CHECK(cudaIpcGetMemHandle(&own.memory, memory));
  MPI_Allgather(&own, sizeof own, MPI_BYTE, cards.data(), sizeof own, MPI_BYTE, MPI_COMM_WORLD);

  for (int r = 0; r < ranks; ++r) {
    if (r == rank) continue;
    REQUIRE(std::memcmp(own.uuid, cards[r].uuid, 16) != 0, "ranks %d and %d share a device", rank,
            r);
    void* opened = nullptr;
    const cudaError_t error =
        cudaIpcOpenMemHandle(&opened, cards[r].memory, cudaIpcMemLazyEnablePeerAccess);
    if (std::strcmp(cards[r].host, own.host) != 0) {
      REQUIRE(error != cudaSuccess, "rank %d opened memory of another host", rank);
      cudaGetLastError();
      continue;
    }
    CUDA_CHECK(error);
    Store<<<1, 1>>>(static_cast<int*>(opened) + rank, rank + 1);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaIpcCloseMemHandle(opened));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int r = 0; r < ranks; ++r) {
    const bool same = r != rank && std::strcmp(cards[r].host, own.host) == 0;
    const int expected = same ? r + 1 : 0;
    REQUIRE(Fetch(memory + r) == expected, "rank %d has %d from rank %d", rank, Fetch(memory + r),
            r);
  }
  CUDA_CHECK(cudaFree(memory));
  MPI_Finalize();
  if (rank == 0) std::printf("PASS two_hosts\n");
  return 0;
}
