// Kernel by kernel: add up in one block, meet, fetch everybody's sums and write, meet again before
// sums are overwritten.
#include <allranks/flags.h>

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  float sum, count;
};
constexpr int kThreads = 256;

__global__ void AddUp(Args args) {
  __shared__ float sums[kThreads], counts[kThreads];
  float sum = 0, count = 0;
  for (std::int64_t i = threadIdx.x; i < args.n; i += kThreads) {
    sum += args.mask[i] * args.loss[i];
    count += args.mask[i];
  }
  sums[threadIdx.x] = sum;
  counts[threadIdx.x] = count;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      sums[threadIdx.x] += sums[threadIdx.x + half];
      counts[threadIdx.x] += counts[threadIdx.x + half];
    }
  }
  if (threadIdx.x == 0) {
    reinterpret_cast<Control*>(args.scratch)->sum = sums[0];
    reinterpret_cast<Control*>(args.scratch)->count = counts[0];
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
  float sum = 0, count = 0;
  for (int r = 0; r < args.world; ++r) {
    sum += reinterpret_cast<const Control*>(args.scratch_peers[r])->sum;
    count += reinterpret_cast<const Control*>(args.scratch_peers[r])->count;
  }
  const std::int64_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i == 0) args.mean[0] = count > 0 ? sum / count : 0;
  for (std::int64_t j = i; j < args.n; j += gridDim.x * kThreads) {
    args.grad[j] = args.mask[j] != 0 ? args.world / count : 0;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  AddUp<<<1, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Write<<<8, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
