// Three phases: a reduce-scatter in rows gives every rank one slice, which is clipped and added up
// over its column, and an all-gather in rows brings the slices together. The second phase and the
// third work in place, in the slice of `out` that has the number of the column.
#include <map>

// The communicators of this rank's row and column, by the number of columns.
struct Grid {
  ncclComm_t row, column;
};
static std::map<std::int64_t, Grid> grids;

static void Split(ncclComm_t world, const Args& args) {
  if (grids.count(args.cols) != 0) return;
  Grid& grid = grids[args.cols];
  const int row = args.rank / args.cols, column = args.rank % args.cols;
  allranks::NcclCheck(ncclCommSplit(world, row, column, &grid.row, nullptr), "ncclCommSplit");
  allranks::NcclCheck(ncclCommSplit(world, column, row, &grid.column, nullptr), "ncclCommSplit");
}

__global__ void Clip(const float* from, float* to, std::int64_t n, float limit) {
  const std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = fminf(fmaxf(from[i], -limit), limit);
}

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  Split(allranks::NcclWorld(boot), args);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  using allranks::NcclCheck;
  const Grid grid = grids.at(args.cols);
  const std::int64_t n = args.n;
  float* slice = args.out + args.rank % args.cols * n;
  NcclCheck(ncclReduceScatter(args.in, args.row_sum, n, ncclFloat32, ncclSum, grid.row, stream),
            "ncclReduceScatter");
  Clip<<<(n + 255) / 256, 256, 0, stream>>>(args.row_sum, slice, n, args.limit);
  NcclCheck(ncclAllReduce(slice, slice, n, ncclFloat32, ncclSum, grid.column, stream),
            "ncclAllReduce");
  NcclCheck(ncclAllGather(slice, args.out, n, ncclFloat32, grid.row, stream), "ncclAllGather");
}
