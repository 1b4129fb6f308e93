#include <allranks/flags.h>

// All ranks meet, a kernel convolves and reads rows of other chunks from where they lie, and all
// meet again, so that no rank leaves while its x is read.

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

// Row `at` of the sequence, wherever it is.
__device__ const float* Row(const Args& args, int at) {
  const int chunk = at / args.rows, row = at % args.rows, world = args.world;
  const int rank = chunk < world ? chunk : 2 * world - 1 - chunk;
  return args.x_peers[rank] + ((chunk >= world) * args.rows + row) * args.channels;
}

__global__ void Convolve(Args args) {
  const int channels = args.channels, rows = args.rows, all = 2 * rows * channels;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
    const int row = i / channels, channel = i % channels;
    const int chunk = row < rows ? args.rank : 2 * args.world - 1 - args.rank;
    const int at = chunk * rows + row % rows;
    float sum = 0;
    for (int j = 0; j < args.taps && j <= at; ++j) {
      sum += args.w[j * channels + channel] * Row(args, at - j)[channel];
    }
    args.y[i] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Convolve<<<32, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
