// Kernel by kernel, with a meeting behind each: local maxima, sums relative to the maximum of all
// ranks, then loss and gradient.
#include <allranks/flags.h>

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 64, kThreads = 32, kSaid = 256;

// What a rank has said of a row.
struct Said {
  float most, sum, chosen;
};
__device__ Said* Of(const Args& args, int rank) {
  return reinterpret_cast<Said*>(args.scratch_peers[rank] + kSaid);
}

__device__ float Most(const Args& args, std::int64_t row) {
  float most = -INFINITY;
  for (int r = 0; r < args.world; ++r) most = fmaxf(most, Of(args, r)[row].most);
  return most;
}

__global__ void Maxima(Args args) {
  for (std::int64_t row = blockIdx.x; row < args.rows; row += kBlocks) {
    float most = -INFINITY;
    for (int j = threadIdx.x; j < args.vocab; j += kThreads) {
      most = fmaxf(most, args.logits[row * args.vocab + j]);
    }
    for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (threadIdx.x == 0) Of(args, args.rank)[row].most = most;
  }
}

__global__ void Sums(Args args) {
  for (std::int64_t row = blockIdx.x; row < args.rows; row += kBlocks) {
    const float* x = args.logits + row * args.vocab;
    const float most = Most(args, row);
    float sum = 0;
    for (int j = threadIdx.x; j < args.vocab; j += kThreads) sum += expf(x[j] - most);
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x != 0) continue;
    Of(args, args.rank)[row].sum = sum;
    Of(args, args.rank)[row].chosen = x[args.label[row]];
  }
}

__global__ void Gradients(Args args) {
  for (std::int64_t row = blockIdx.x; row < args.rows; row += kBlocks) {
    const float most = Most(args, row);
    float sum = 0, chosen = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += Of(args, r)[row].sum;
      chosen += Of(args, r)[row].chosen / args.world;
    }
    for (int j = threadIdx.x; j < args.vocab; j += kThreads) {
      const float target = j == args.label[row] ? 1.0f / args.world : 0;
      const std::int64_t at = row * args.vocab + j;
      args.grad[at] = expf(args.logits[at] - most) / sum - target;
    }
    if (threadIdx.x == 0) args.loss[row] = most + logf(sum) - chosen;
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

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Maxima<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Sums<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Gradients<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
