// One flag per block and peer: block b pushes the sums of its rows to all peers, tells them, and
// goes on when all have told. Two sets of sums, used in turn: a rank that tells of call k + 1 has
// read those of call k, and nobody writes the sums of call k + 2 before it has told so.
#include <allranks/flags.h>

constexpr int kMaxBlocks = 64, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t told[kMaxBlocks][kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) Norm(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::int64_t set = (call & 1) * args.rows;
  const std::int64_t first = blockIdx.x * (kThreads / 32) + warp;
  const std::int64_t stride = gridDim.x * (kThreads / 32);
  for (std::int64_t row = first; row < args.rows; row += stride) {
    float sum = 0;
    for (std::int64_t j = lane; j < args.hidden; j += 32) {
      const float x = args.x[row * args.hidden + j];
      sum += x * x;
    }
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane < args.world) {
      float* sums = reinterpret_cast<float*>(args.scratch_peers[lane] + sizeof(Control));
      sums[(set + row) * kMaxRanks + args.rank] = sum;
    }
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->told[blockIdx.x][args.rank], call);
    allranks::WaitAcquireSys(&mine->told[blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
  const float* sums = reinterpret_cast<float*>(args.scratch + sizeof(Control));
  for (std::int64_t row = first; row < args.rows; row += stride) {
    float total = 0;
    for (int r = 0; r < args.world; ++r) total += sums[(set + row) * kMaxRanks + r];
    const float factor = 1 / sqrtf(total / (args.world * args.hidden) + 1e-5f);
    for (std::int64_t j = lane; j < args.hidden; j += 32) {
      args.norm[row * args.hidden + j] = args.weight[j] * factor * args.x[row * args.hidden + j];
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.rows + kThreads / 32 - 1) / (kThreads / 32);
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  Norm<<<blocks, kThreads, 0, stream>>>(args);
}
