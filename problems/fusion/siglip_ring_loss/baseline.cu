// Kernel by kernel: all ranks meet, texts are fetched, all ranks meet again, and a block per image
// makes scores, then the gradient.
#include <allranks/flags.h>

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kThreads = 128, kDim = 64, kMaxTexts = kMaxRanks * 256;
constexpr int kData = 256;
constexpr float kScale = 1.0f / 32768;

__global__ void Fetch(Args args) {
  const int each = static_cast<int>(args.n) * kDim;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < args.world * each; i += 8 * kThreads) {
    args.scratch[kData + i] = static_cast<std::uint8_t>(args.text_peers[i / each][i % each]);
  }
}

__global__ void Images(Args args) {
  __shared__ float coefficients[kMaxTexts], losses[kThreads];
  const int n = static_cast<int>(args.n), thread = threadIdx.x;
  const auto* text = reinterpret_cast<const std::int8_t*>(args.scratch + kData);
  for (int image = blockIdx.x; image < n; image += gridDim.x) {
    losses[thread] = 0;
    for (int i = thread; i < args.world * n; i += kThreads) {
      int dot = 0;
      for (int d = 0; d < kDim; ++d) dot += args.image[image * kDim + d] * text[i * kDim + d];
      const float sign = i == args.rank * n + image ? 1 : -1, y = -sign * (dot * kScale - 2);
      losses[thread] += log1pf(expf(y));
      coefficients[i] = -sign / (1 + expf(-y)) * kScale;
    }
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (thread < half) losses[thread] += losses[thread + half];
    }
    if (thread == 0) args.loss[image] = losses[0];
    if (thread < kDim) {
      float sum = 0;
      for (int i = 0; i < args.world * n; ++i) {
        sum += coefficients[i] * text[i * kDim + thread];
      }
      args.grad[image * kDim + thread] = sum;
    }
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

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Fetch<<<8, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Images<<<32, kThreads, 0, stream>>>(args);
}
