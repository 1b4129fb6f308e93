// Kernel by kernel: sums of squares of queries and keys, a meeting, everybody's sums and the norm,
// and a meeting before sums are overwritten.
#include <allranks/flags.h>
#include <allranks/numbers.h>

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 64, kSums = 256;
using Number = allranks::Number<__nv_bfloat16>;
using Bits = allranks::Bits<__nv_bfloat16>;

// One warp per block; a row's sums are those of queries, then of keys.
__global__ void Squares(Args args) {
  for (std::int64_t row = blockIdx.x; row < args.rows; row += kBlocks) {
    const Bits* in = reinterpret_cast<const Bits*>(args.qkv) + row * (args.q_dim + 2 * args.k_dim);
    float sums[2] = {0, 0};
    for (std::int64_t j = threadIdx.x; j < args.q_dim + args.k_dim; j += 32) {
      const float x = Number::ToFloat(in[j]);
      sums[j < args.q_dim ? 0 : 1] += x * x;
    }
    for (int part = 0; part < 2; ++part) {
      for (int d = 16; d > 0; d /= 2) sums[part] += __shfl_xor_sync(~0u, sums[part], d);
      if (threadIdx.x == 0) {
        reinterpret_cast<float*>(args.scratch + kSums)[2 * row + part] = sums[part];
      }
    }
  }
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->reached[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

// Part 0: queries, part 1: keys.
__global__ void Scale(Args args, int part) {
  const std::int64_t dim = part == 0 ? args.q_dim : args.k_dim;
  const Bits* weight = reinterpret_cast<const Bits*>(part == 0 ? args.q_weight : args.k_weight);
  Bits* out = reinterpret_cast<Bits*>(part == 0 ? args.q : args.k);
  for (std::int64_t row = blockIdx.x; row < args.rows; row += kBlocks) {
    const Bits* in = reinterpret_cast<const Bits*>(args.qkv) + row * (args.q_dim + 2 * args.k_dim);
    float total = 0;
    for (int r = 0; r < args.world; ++r) {
      total += reinterpret_cast<const float*>(args.scratch_peers[r] + kSums)[2 * row + part];
    }
    const float factor = rsqrtf(total / (args.world * dim) + 1e-5f);
    for (std::int64_t j = threadIdx.x; j < dim; j += blockDim.x) {
      const float x = Number::ToFloat(in[part * args.q_dim + j]);
      out[row * dim + j] = Number::FromFloat(Number::ToFloat(weight[j]) * x * factor);
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Squares<<<kBlocks, 32, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Scale<<<kBlocks, 64, 0, stream>>>(args, 0);
  Scale<<<kBlocks, 64, 0, stream>>>(args, 1);
  Meet<<<1, 32, 0, stream>>>(args);
}
