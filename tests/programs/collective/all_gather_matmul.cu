// All-gather overlapped with a matrix product, tile by tile: each rank owns a block of rows of A
// and a block of columns of B. Two blocks push A's row tiles to all peers, the others multiply a
// tile as soon as its flag is up, starting with their own. The gathered A exists twice, so that the
// next call's tiles may come while this one is still multiplied.
//
// run 2.threads: | 2 threads
// run 3.processes: | 3 processes
// run 5.threads: | 5 threads
// run 8.processes: | 8 processes
#include "world.h"

namespace {

constexpr int kTile = 8;   // rows per tile
constexpr int kTiles = 2;  // tiles per rank
constexpr int kInner = 32, kCols = 24;
constexpr int kMovers = 2, kWorkers = 4, kThreads = 64, kCalls = 4;
constexpr int kTileWords = kTile * kInner;
constexpr int kRows = kTile * kTiles;  // per rank

struct Buffers {
  int a[2][kMaxRanks * kTiles][kTileWords];
  uint32_t ready[2][kMaxRanks * kTiles];  // the call whose tile is here
  uint32_t finished[kMaxRanks];           // calls that each rank has multiplied
  uint32_t workers_done;                  // blocks of this rank, of all calls
};

int A(int call, int row, int k) { return (row * 7 + k * 3 + call * 11) % 19 - 9; }
int B(int k, int col) { return (k * 5 + col * 13) % 17 - 8; }

__device__ void Move(Peers<Buffers> buffers, int rank, int ranks, uint32_t call, const int* a) {
  for (int step = 0; step < ranks; ++step) {
    const int peer = (rank + step) % ranks;
    if (call >= 2 && threadIdx.x == 0) WaitAtLeast(&buffers[rank]->finished[peer], call - 1);
    __syncthreads();
    for (int t = blockIdx.x; t < kTiles; t += kMovers) {
      const int tile = rank * kTiles + t;
      for (int i = threadIdx.x; i < kTileWords; i += kThreads)
        buffers[peer]->a[call & 1][tile][i] = a[t * kTileWords + i];
      __syncthreads();
      if (threadIdx.x == 0) StoreReleaseSys(&buffers[peer]->ready[call & 1][tile], call + 1);
    }
  }
}

__device__ void Multiply(Peers<Buffers> buffers, int rank, int ranks, uint32_t call, const int* b,
                         int* c) {
  Buffers* mine = buffers[rank];
  const int tiles = ranks * kTiles;
  for (int n = blockIdx.x - kMovers; n < tiles; n += kWorkers) {
    const int tile = (rank * kTiles + n) % tiles;  // in the order of arrival
    if (threadIdx.x == 0) WaitAtLeast(&mine->ready[call & 1][tile], call + 1);
    if (threadIdx.x == 0) Stumble(rank, call * tiles + n);
    __syncthreads();
    for (int i = threadIdx.x; i < kTile * kCols; i += kThreads) {
      const int row = i / kCols, col = i % kCols;
      int sum = 0;
      for (int k = 0; k < kInner; ++k)
        sum += mine->a[call & 1][tile][row * kInner + k] * b[k * kCols + col];
      c[(tile * kTile + row) * kCols + col] = sum;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicAdd(&mine->workers_done, 1) == (call + 1) * kWorkers - 1) {
      __threadfence_system();  // the last worker speaks for all of them
      for (int r = 0; r < ranks; ++r) StoreReleaseSys(&buffers[r]->finished[rank], call + 1);
    }
  }
}

__global__ void GatherMultiply(Peers<Buffers> buffers, int rank, int ranks, uint32_t call,
                               const int* a, const int* b, int* c) {
  if (blockIdx.x < kMovers) {
    Move(buffers, rank, ranks, call, a);
  } else {
    Multiply(buffers, rank, ranks, call, b, c);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    const auto buffers = world.Share<Buffers>();
    std::vector<int> rows, cols;
    for (int call = 0; call < kCalls; ++call) {
      for (int i = 0; i < kRows * kInner; ++i)
        rows.push_back(A(call, rank * kRows + i / kInner, i % kInner));
    }
    for (int i = 0; i < kInner * kCols; ++i) cols.push_back(B(i / kCols, rank * kCols + i % kCols));
    const int* a = world.Allocate(rows);
    const int* b = world.Allocate(cols);
    const int size = ranks * kRows * kCols;
    int* c = world.Allocate<int>(kCalls * size);
    for (int call = 0; call < kCalls; ++call) {
      GatherMultiply<<<kMovers + kWorkers, kThreads, 0, world.stream()>>>(
          buffers, rank, ranks, call, a + call * kRows * kInner, b, c + call * size);
      CUDA_CHECK_LAUNCH();
    }
    RequireElements(world, "product", kCalls, world.Result(c, kCalls * size), [&](int n) {
      const int call = n / size, row = n % size / kCols, col = n % kCols;
      int sum = 0;
      for (int k = 0; k < kInner; ++k) sum += A(call, row, k) * B(k, rank * kCols + col);
      return sum;
    });
  });
}
