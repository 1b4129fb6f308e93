// Step by step, with a meeting of all ranks between the steps: everyone stages its input and tokens
// and rank 0 the grid; everyone adds up its row; the weighted sums are staged; everyone adds up its
// column. A last meeting keeps the staged data until all have read them.
#include <allranks/flags.h>

using namespace allranks;
constexpr int kBlocks = 32, kThreads = 256;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  std::int32_t grid[kMaxRanks];
};

__device__ float* Staged(const Args& args, int rank) {
  return reinterpret_cast<float*>(args.scratch_peers[rank] + 256);
}

__global__ void Stage(Args args) {
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (int i = first; i < args.n; i += kBlocks * kThreads) Staged(args, args.rank)[i] = args.in[i];
  if (first < args.world) reinterpret_cast<Control*>(args.scratch)->grid[first] = args.grid[first];
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncwarp();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__device__ int PlaceOf(const Args& args, const std::int32_t* grid) {
  int place = 0;
  while (place < args.world - 1 && grid[place] != args.rank) ++place;
  return place;
}

__global__ void SumRow(Args args) {
  const std::int32_t* grid = reinterpret_cast<const Control*>(args.scratch_peers[0])->grid;
  const int row = PlaceOf(args, grid) / args.cols;
  const float tokens = args.tokens[0];
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (int i = first; i < args.n; i += kBlocks * kThreads) {
    float sum = 0;
    for (int p = row * args.cols; p < min((row + 1) * args.cols, std::int64_t{args.world}); ++p) {
      sum += Staged(args, grid[p])[i];
    }
    args.row_sum[i] = sum;
    Staged(args, args.rank)[args.n + i] = tokens * sum;
  }
}

__global__ void SumColumn(Args args) {
  const std::int32_t* grid = reinterpret_cast<const Control*>(args.scratch_peers[0])->grid;
  const int column = PlaceOf(args, grid) % args.cols;
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (int i = first; i < args.n; i += kBlocks * kThreads) {
    float sum = 0;
    for (int p = column; p < args.world; p += args.cols) sum += Staged(args, grid[p])[args.n + i];
    args.out[i] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  SumRow<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  SumColumn<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
