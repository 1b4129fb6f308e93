// The transpose of a matrix whose rows lie in slices on all devices: blocks read a tile of their
// own rows, turn it in shared memory and store it where its columns become rows. Two transposes
// give the matrix back.
//
// run 2.threads: | 2 threads
// run 3.processes: | 3 processes
// run 5.threads: | 5 threads
// run 8.processes: | 8 processes
#include "world.h"

namespace {

constexpr int kSize = 100, kTile = 16, kThreads = kTile * kTile, kCalls = 3;

struct Matrix {
  int rows[kSize][kSize];  // only the rows of this rank's slice are used
};

int Input(int row, int col) { return row * 1000 + col; }

__device__ int OwnerOf(int row, int ranks) {
  int rank = 0;
  while (row >= SliceOf(kSize, rank, ranks).end) ++rank;
  return rank;
}

// Rows of `from` on this rank become columns of `to` on all ranks.
__global__ void Transpose(const Matrix* from, Peers<Matrix> to, int rank, int ranks) {
  __shared__ int tile[kTile][kTile + 1];
  const Slice slice = SliceOf(kSize, rank, ranks);
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  int row = slice.begin + blockIdx.y * kTile + y, col = blockIdx.x * kTile + x;
  if (row < slice.end && col < kSize) tile[y][x] = from->rows[row][col];
  __syncthreads();
  // Neighbouring threads now hold neighbouring rows, which are neighbours in a row of the result.
  row = slice.begin + blockIdx.y * kTile + x;
  col = blockIdx.x * kTile + y;
  if (row < slice.end && col < kSize) to[OwnerOf(col, ranks)]->rows[col][row] = tile[x][y];
}

__global__ void Sync(Peers<Meeting<1>> meeting, int rank, int ranks, uint32_t epoch) {
  Meet(meeting, rank, ranks, epoch);
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    const Slice slice = SliceOf(kSize, rank, ranks);
    const auto there = world.Share<Matrix>(), back = world.Share<Matrix>();
    const auto meeting = world.Share<Meeting<1>>();
    std::vector<int> rows;
    for (int i = 0; i < slice.size() * kSize; ++i)
      rows.push_back(Input(slice.begin + i / kSize, i % kSize));
    Upload(&back[rank]->rows[slice.begin][0], rows.data(), rows.size());
    world.Barrier();
    const dim3 grid((kSize + kTile - 1) / kTile, (slice.size() + kTile - 1) / kTile);
    uint32_t epoch = 0;
    for (int call = 0; call < kCalls; ++call) {
      // A kernel's end makes its stores visible to the meeting kernel behind it, which says so.
      Transpose<<<grid, kThreads, 0, world.stream()>>>(back[rank], there, rank, ranks);
      Sync<<<1, 32, 0, world.stream()>>>(meeting, rank, ranks, ++epoch);
      CUDA_CHECK_LAUNCH();
      RequireElements(world, "transposed", call,
                      world.Result(&there[rank]->rows[slice.begin][0], rows.size()),
                      [&](int i) { return Input(i % kSize, slice.begin + i / kSize); });
      CUDA_CHECK(cudaMemsetAsync(back[rank], 0xff, sizeof(Matrix), world.stream()));
      Sync<<<1, 32, 0, world.stream()>>>(meeting, rank, ranks, ++epoch);
      Transpose<<<grid, kThreads, 0, world.stream()>>>(there[rank], back, rank, ranks);
      Sync<<<1, 32, 0, world.stream()>>>(meeting, rank, ranks, ++epoch);
      CUDA_CHECK_LAUNCH();
      RequireElements(world, "back again", call,
                      world.Result(&back[rank]->rows[slice.begin][0], rows.size()),
                      [&](int i) { return rows[i]; });
    }
  });
}
