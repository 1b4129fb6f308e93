// One flag per block and peer: block b pushes the sums of its rows to all peers, tells them, and
// goes on when all have told. Queries and keys are treated alike, as two parts of a row. Two sets
// of sums, used in turn: a rank that tells of call k + 1 has read those of call k, and nobody
// writes the sums of call k + 2 before it has told so.
#include <allranks/flags.h>
#include <allranks/numbers.h>

constexpr int kMaxBlocks = 64, kThreads = 128;
using Number = allranks::Number<__nv_bfloat16>;
using Bits = allranks::Bits<__nv_bfloat16>;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t told[kMaxBlocks][kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) NormQk(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, part = warp % 2;
  const std::int64_t dim = part == 0 ? args.q_dim : args.k_dim, set = (call & 1) * args.rows;
  const std::int64_t first = blockIdx.x * (kThreads / 64) + warp / 2;
  const std::int64_t stride = gridDim.x * (kThreads / 64), columns = args.q_dim + 2 * args.k_dim;
  const Bits* in = reinterpret_cast<const Bits*>(args.qkv) + part * args.q_dim;
  for (std::int64_t row = first; row < args.rows; row += stride) {
    float sum = 0;
    for (std::int64_t j = lane; j < dim; j += 32) {
      const float x = Number::ToFloat(in[row * columns + j]);
      sum += x * x;
    }
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane < args.world) {
      float* sums = reinterpret_cast<float*>(args.scratch_peers[lane] + sizeof(Control));
      sums[((set + row) * 2 + part) * kMaxRanks + args.rank] = sum;
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
  const Bits* weight = reinterpret_cast<const Bits*>(part == 0 ? args.q_weight : args.k_weight);
  Bits* out = reinterpret_cast<Bits*>(part == 0 ? args.q : args.k);
  for (std::int64_t row = first; row < args.rows; row += stride) {
    float total = 0;
    for (int r = 0; r < args.world; ++r) total += sums[((set + row) * 2 + part) * kMaxRanks + r];
    const float root = sqrtf(total / (args.world * dim) + 1e-5f);
    for (std::int64_t j = lane; j < dim; j += 32) {
      const float x = Number::ToFloat(in[row * columns + j]);
      out[row * dim + j] = Number::FromFloat(Number::ToFloat(weight[j]) * (x / root));
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.rows + kThreads / 64 - 1) / (kThreads / 64);
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  NormQk<<<blocks, kThreads, 0, stream>>>(args);
}
