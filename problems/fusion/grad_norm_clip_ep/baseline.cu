// Kernel by kernel: for each group the sum of its squares, by atomics; the sums sent to all, a
// meeting, and the scaling of each group.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kBlocks = 32, kThreads = 256;

struct Control {
  std::uint32_t calls;
  std::uint32_t arrived[kMaxRanks];
  float of_ranks[2][kMaxRanks][3];  // by parity of the call
  float sums[3];
};

__global__ void Clear(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  for (float& sum : mine->sums) sum = 0;
}

__global__ void Square(Args args, int group, const float* in, std::int64_t count, float scale) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  float sum = 0;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    sum += scale * in[i] * (scale * in[i]);
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) atomicAdd(&mine->sums[group], sum);
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    for (int k = 0; k < 3; ++k) {
      const bool counts = k < 2 || args.rank < args.ep;
      peer->of_ranks[call % 2][args.rank][k] = counts ? mine->sums[k] : 0;
    }
    StoreReleaseSys(&peer->arrived[args.rank], call);
    WaitAcquireSys(&mine->arrived[threadIdx.x], call);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->calls = call;
}

__global__ void Scale(Args args, const float* in, float* out, std::int64_t count, float scale) {
  const Control* mine = reinterpret_cast<const Control*>(args.scratch);
  float sums[4] = {};
  for (int r = 0; r < args.world; ++r) {
    for (int k = 0; k < 3; ++k) sums[k] += mine->of_ranks[mine->calls % 2][r][k];
  }
  sums[3] = sums[0] + sums[1] + sums[2];
  const float norm = sqrtf(sums[3]), limit = static_cast<float>(args.max_norm);
  if (norm > limit) scale *= limit / norm;
  const int first = blockIdx.x * kThreads + threadIdx.x;
  if (first < 4) args.norms[first] = sqrtf(sums[first]);
  for (int i = first; i < count; i += kBlocks * kThreads) out[i] = in[i] * scale;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const float part = 1.0f / args.ep;
  Clear<<<1, 1, 0, stream>>>(args);
  Square<<<kBlocks, kThreads, 0, stream>>>(args, 0, args.dense, args.n, 1);
  Square<<<kBlocks, kThreads, 0, stream>>>(args, 1, args.expert, args.e, part);
  Square<<<kBlocks, kThreads, 0, stream>>>(args, 2, args.replicated, args.s, 1);
  Meet<<<1, 32, 0, stream>>>(args);
  Scale<<<kBlocks, kThreads, 0, stream>>>(args, args.dense, args.new_dense, args.n, 1);
  Scale<<<kBlocks, kThreads, 0, stream>>>(args, args.expert, args.new_expert, args.e, part);
  Scale<<<kBlocks, kThreads, 0, stream>>>(args, args.replicated, args.new_replicated, args.s, 1);
}
