// All-reduce between ranks that `mpirun` has started: memory is shared by IPC handles which travel
// by MPI, sums are made by kernels that wait for each other, and the ranks talk by MPI while their
// kernels wait.
//
// run 2: | -n 2
// run 3: | -n 3
// run 4: | -n 4
#include <mpi.h>

#include <vector>

#include "check.h"
#include "flags.h"

namespace {

constexpr int kMaxRanks = 8;
constexpr int kThreads = 128;
constexpr int kCount = 1000;
constexpr int kCalls = 3;
constexpr int kPinned = 50000;

struct Shared {
  uint32_t flags[kMaxRanks];  // the last call of which each rank has filled its buffer
  uint32_t go;                // the last call that rank 0 lets begin
  int buffer[2][kCount];
};

struct Peers {
  Shared* rank[kMaxRanks];
};

__host__ __device__ int Input(int rank, int call, int i) { return rank * 1000003 + call * 101 + i; }

// Two buffers suffice: see allreduce_one_shot.
__global__ void AllReduce(Peers peers, int rank, int ranks, uint32_t epoch, int* output) {
  Shared* mine = peers.rank[rank];
  const int parity = epoch & 1;
  if (threadIdx.x == 0) {
    while (LoadAcquireSys(&mine->go) < epoch) {
    }
  }
  for (int i = threadIdx.x; i < kCount; i += kThreads)
    mine->buffer[parity][i] = Input(rank, epoch, i);
  __syncthreads();
  if (threadIdx.x < ranks) {
    StoreReleaseSys(&peers.rank[threadIdx.x]->flags[rank], epoch);
    while (LoadAcquireSys(&mine->flags[threadIdx.x]) < epoch) {
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kCount; i += kThreads) {
    int sum = 0;
    for (int r = 0; r < ranks; ++r) sum += peers.rank[r]->buffer[parity][i];
    output[i] = sum;
  }
}

__global__ void Go(Peers peers, int ranks, uint32_t epoch) {
  if (threadIdx.x < ranks) StoreReleaseSys(&peers.rank[threadIdx.x]->go, epoch);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  RequireDevices(ranks);
  Shared* mine = ZeroedOn<Shared>(rank);
  int* output = ZeroedOn<int>(rank, kCount);

  cudaIpcMemHandle_t own;
  CUDA_CHECK(cudaIpcGetMemHandle(&own, mine));
  std::vector<cudaIpcMemHandle_t> handles(ranks);
  MPI_Allgather(&own, sizeof own, MPI_BYTE, handles.data(), sizeof own, MPI_BYTE, MPI_COMM_WORLD);
  Peers peers{};
  for (int r = 0; r < ranks; ++r) {
    void* opened = mine;
    if (r != rank)
      CUDA_CHECK(cudaIpcOpenMemHandle(&opened, handles[r], cudaIpcMemLazyEnablePeerAccess));
    peers.rank[r] = static_cast<Shared*>(opened);
  }

  int *sent = nullptr, *received = nullptr;
  CUDA_CHECK(cudaHostAlloc(&sent, kPinned * sizeof(int), cudaHostAllocDefault));
  CUDA_CHECK(cudaHostAlloc(&received, kPinned * sizeof(int), cudaHostAllocDefault));
  cudaStream_t side;
  CUDA_CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  for (int call = 1; call <= kCalls; ++call) {
    AllReduce<<<1, kThreads>>>(peers, rank, ranks, call, output);
    CUDA_CHECK_LAUNCH();
    // Every kernel waits now; a token goes round before rank 0 lets them go on.
    int token = call;
    if (rank != 0) MPI_Recv(&token, 1, MPI_INT, rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ++token;
    MPI_Send(&token, 1, MPI_INT, (rank + 1) % ranks, 7, MPI_COMM_WORLD);
    if (rank == 0) {
      MPI_Recv(&token, 1, MPI_INT, ranks - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      REQUIRE(token == call + ranks, "the token is %d, not %d", token, call + ranks);
    }
    // Pinned memory in messages of many pages, while devices are at work.
    for (int i = 0; i < kPinned; ++i) sent[i] = rank * 7 + call + i;
    MPI_Sendrecv(sent, kPinned, MPI_INT, (rank + 1) % ranks, 8, received, kPinned, MPI_INT,
                 (rank + ranks - 1) % ranks, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const int left = (rank + ranks - 1) % ranks;
    for (int i = 0; i < kPinned; ++i)
      REQUIRE(received[i] == left * 7 + call + i, "rank %d, call %d: word %d is wrong", rank, call,
              i);
    if (rank == 0) {
      Go<<<1, 32, 0, side>>>(peers, ranks, call);
      CUDA_CHECK_LAUNCH();
    }
    int told = rank == 0 ? call : -1;
    MPI_Bcast(&told, 1, MPI_INT, 0, MPI_COMM_WORLD);
    REQUIRE(told == call, "rank %d was told %d", rank, told);
    std::vector<int> got(kCount);
    CUDA_CHECK(cudaMemcpy(got.data(), output, kCount * sizeof(int), cudaMemcpyDeviceToHost));
    std::vector<int> input(kCount), expected(kCount);
    for (int i = 0; i < kCount; ++i) input[i] = Input(rank, call, i);
    MPI_Allreduce(input.data(), expected.data(), kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < kCount; ++i)
      REQUIRE(got[i] == expected[i], "rank %d, call %d, element %d: got %d, expected %d", rank,
              call, i, got[i], expected[i]);
  }
  for (int r = 0; r < ranks; ++r)
    if (r != rank) CUDA_CHECK(cudaIpcCloseMemHandle(peers.rank[r]));
  MPI_Barrier(MPI_COMM_WORLD);  // memory may be freed only after every importer has closed it
  CUDA_CHECK(cudaFree(mine));
  MPI_Finalize();
  if (rank == 0)
    std::printf("PASS allreduce_ipc: %d ranks, %d calls of %d\n", ranks, kCalls, kCount);
  return 0;
}
