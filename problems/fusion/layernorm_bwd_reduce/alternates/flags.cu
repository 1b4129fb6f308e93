// One flag per block and peer: block b leaves the sums of its columns in its own memory, tells all
// peers, and reads theirs when all have told. Two sets of sums, used in turn: a rank that tells of
// call k + 1 has read those of call k, and nobody overwrites them before it has told so.
#include <allranks/flags.h>

constexpr int kMaxBlocks = 64, kColumns = 32, kRows = 8;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t told[kMaxBlocks][kMaxRanks];
};

__global__ void __launch_bounds__(kColumns* kRows) Reduce(Args args) {
  __shared__ float2 of_row[kRows][kColumns];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int x = threadIdx.x, y = threadIdx.y, thread = y * kColumns + x;
  const std::int64_t offset = sizeof(Control) + (call & 1) * args.hidden * sizeof(float2);
  for (int first = blockIdx.x * kColumns; first < args.hidden; first += gridDim.x * kColumns) {
    float2 sum = {0, 0};
    for (std::int64_t row = y; row < args.rows && first + x < args.hidden; row += kRows) {
      const float dy = args.dy[row * args.hidden + first + x];
      sum = {fmaf(dy, args.xhat[row * args.hidden + first + x], sum.x), sum.y + dy};
    }
    __syncthreads();
    of_row[y][x] = sum;
    __syncthreads();
    if (y > 0 || first + x >= args.hidden) continue;
    for (int other = 1; other < kRows; ++other) {
      sum = {sum.x + of_row[other][x].x, sum.y + of_row[other][x].y};
    }
    reinterpret_cast<float2*>(args.scratch + offset)[first + x] = sum;
  }
  __syncthreads();
  if (thread < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread]);
    allranks::StoreReleaseSys(&peer->told[blockIdx.x][args.rank], call);
    allranks::WaitAcquireSys(&mine->told[blockIdx.x][thread], call);
  }
  __syncthreads();
  for (int first = blockIdx.x * kColumns; first < args.hidden; first += gridDim.x * kColumns) {
    if (y > 0 || first + x >= args.hidden) continue;
    float2 total = {0, 0};
    for (int r = 0; r < args.world; ++r) {
      const float2 sum = reinterpret_cast<float2*>(args.scratch_peers[r] + offset)[first + x];
      total = {total.x + sum.x, total.y + sum.y};
    }
    args.dweight[first + x] = total.x;
    args.dbias[first + x] = total.y;
  }
  if (thread == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.hidden + kColumns - 1) / kColumns);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Reduce<<<blocks, dim3(kColumns, kRows), 0, stream>>>(args);
}
