#include <allranks/flags.h>

// All ranks meet, a kernel convolves and reads rows of neighbours from where they lie, and all meet
// again, so that no rank leaves while its x is read.

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

__global__ void Convolve(Args args) {
  const int rows = args.rows, cols = args.cols, inputs = args.inputs, outputs = args.outputs;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols * outputs;
       i += gridDim.x * blockDim.x) {
    const int row = args.rank * rows + i / outputs / cols, col = i / outputs % cols;
    float sum = 0;
    for (int tap = 0; tap < 9; ++tap) {
      const int r = row + tap / 3 - 1, c = col + tap % 3 - 1;
      if (r < 0 || r >= args.world * rows || c < 0 || c >= cols) continue;
      const float* x = args.x_peers[r / rows] + (r % rows * cols + c) * inputs;
      for (int j = 0; j < inputs; ++j) {
        sum += args.w[(tap * inputs + j) * outputs + i % outputs] * x[j];
      }
    }
    args.y[i] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Convolve<<<32, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
