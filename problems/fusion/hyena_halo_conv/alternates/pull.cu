#include <allranks/flags.h>

// Halo rows are loaded from the neighbours' x, between two meetings of neighbours: when both have
// entered the call, and when both have read. A block has 32 channels of both chunks.

using namespace allranks;
constexpr int kMaxBlocks = 64, kThreads = 512, kSlice = 32;

struct Control {
  std::uint32_t meetings[kMaxBlocks];
  std::uint32_t reached[kMaxBlocks][2];  // by the lower and the upper neighbour
};

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  __syncthreads();
  const int side = threadIdx.x, peer = args.rank - 1 + 2 * side;
  if (side < 2 && peer >= 0 && peer < args.world) {
    Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    StoreReleaseSys(&theirs->reached[blockIdx.x][1 - side], meeting);
    WaitAcquireSys(&mine->reached[blockIdx.x][side], meeting);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) Convolve(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t before = mine->meetings[blockIdx.x];
  const int channel = blockIdx.x * kSlice + threadIdx.x % kSlice, rank = args.rank;
  const int channels = args.channels, rows = args.rows;
  Meet(args, before + 1);
  // Where the rows before each chunk end; null at the beginning of the sequence.
  const float* ends[2] = {rank == 0 ? nullptr : args.x_peers[rank - 1] + rows * channels,
                          rank == args.world - 1 ? args.x + rows * channels
                                                 : args.x_peers[rank + 1] + 2 * rows * channels};
  for (int i = threadIdx.x / kSlice; i < 2 * rows && channel < channels; i += kThreads / kSlice) {
    const int row = i % rows;
    const float* end = ends[i / rows];
    float sum = 0;
    for (int j = 0; j < args.taps; ++j) {
      float value = 0;
      if (j <= row) {
        value = args.x[(i - j) * channels + channel];
      } else if (end != nullptr) {
        value = end[(row - j) * channels + channel];
      }
      sum += args.w[j * channels + channel] * value;
    }
    args.y[i * channels + channel] = sum;
  }
  Meet(args, before + 2);
  if (threadIdx.x == 0) mine->meetings[blockIdx.x] = before + 2;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Convolve<<<(args.channels + kSlice - 1) / kSlice, kThreads, 0, stream>>>(args);
}
