#include <allranks/flags.h>

// All ranks meet, a kernel fetches the sequence up to here, all meet again, so that no rank leaves
// while its x is read, and a kernel computes each result from the copy.

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

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

__global__ void Fetch(Args args) {
  const int size = args.rows * args.channels;
  float* x = reinterpret_cast<float*>(args.scratch + 1024);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (args.rank + 1) * size;
       i += gridDim.x * blockDim.x) {
    x[i] = args.x_peers[i / size][i % size];
  }
}

__global__ void Convolve(Args args) {
  const int rows = args.rows, channels = args.channels;
  const float* x = reinterpret_cast<const float*>(args.scratch + 1024);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * channels;
       i += gridDim.x * blockDim.x) {
    const int channel = i % channels, position = args.rank * rows + i / channels;
    float sum = 0;
    for (int s = 0; s <= position; ++s) {
      sum += args.w[(position - s) * channels + channel] * x[s * channels + channel];
    }
    args.y[i] = args.gate[i] * sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Fetch<<<32, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Convolve<<<32, 256, 0, stream>>>(args);
}
