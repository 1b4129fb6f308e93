// Kernel by kernel: add up in one block, meet, fetch everybody's sums and write, meet again before
// sums are overwritten.
#include <allranks/flags.h>

constexpr int kThreads = 256, kSums = 7;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  float sums[kSums];
};

__global__ void AddUp(Args args) {
  __shared__ float of_thread[kThreads];
  float sums[kSums] = {0, 0, 0, 0, 0, 0, 0};
  for (std::int64_t i = threadIdx.x; i < args.n; i += kThreads) {
    if (args.mask[i] == 0) continue;
    const float d = args.logp[i] - args.old_logp[i], r = expf(d), a = args.advantage[i];
    const float terms[kSums] = {1, -r * a, r, r * r, d, r - 1 - d, a};
    for (int j = 0; j < kSums; ++j) sums[j] += terms[j];
  }
  for (int j = 0; j < kSums; ++j) {
    of_thread[threadIdx.x] = sums[j];
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) of_thread[threadIdx.x] += of_thread[threadIdx.x + half];
    }
    if (threadIdx.x == 0) reinterpret_cast<Control*>(args.scratch)->sums[j] = of_thread[0];
    __syncthreads();
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

__global__ void Write(Args args) {
  __shared__ float total[kSums];
  if (threadIdx.x < kSums) {
    float sum = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += reinterpret_cast<const Control*>(args.scratch_peers[r])->sums[threadIdx.x];
    }
    total[threadIdx.x] = sum;
  }
  __syncthreads();
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  if (first == 0) {
    args.stats[0] = total[0];
    for (int j = 1; j < kSums; ++j) args.stats[j] = total[0] > 0 ? total[j] / total[0] : 0;
  }
  for (std::int64_t i = first; i < args.n; i += gridDim.x * kThreads) {
    const float r = expf(args.logp[i] - args.old_logp[i]);
    args.grad[i] = args.mask[i] != 0 ? -r * args.advantage[i] / total[0] : 0;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  AddUp<<<1, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Write<<<8, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
