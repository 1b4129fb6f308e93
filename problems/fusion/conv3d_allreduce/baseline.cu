#include <allranks/flags.h>

// A kernel leaves this rank's part in the scratch, all ranks meet, a kernel adds up the parts of
// all ranks from where they lie, and all meet again before parts are overwritten.

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
  float* part = reinterpret_cast<float*>(args.scratch + 1024);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < args.depth * rows * cols * outputs;
       i += gridDim.x * blockDim.x) {
    const int pixel = i / outputs, z = pixel / cols / rows, row = pixel / cols % rows;
    float sum = 0;
    for (int tap = 0; tap < 27; ++tap) {
      const int d = z + tap / 9 - 1, r = row + tap / 3 % 3 - 1, c = pixel % cols + tap % 3 - 1;
      if (d < 0 || d >= args.depth || r < 0 || r >= rows || c < 0 || c >= cols) continue;
      const float* x = args.x + ((d * rows + r) * cols + c) * inputs;
      for (int j = 0; j < inputs; ++j) {
        sum += args.w[(tap * inputs + j) * outputs + i % outputs] * x[j];
      }
    }
    part[i] = sum;
  }
}

__global__ void Sum(Args args) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x;
       i < args.depth * args.rows * args.cols * args.outputs; i += gridDim.x * blockDim.x) {
    float sum = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += reinterpret_cast<const float*>(args.scratch_peers[r] + 1024)[i];
    }
    args.y[i] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Convolve<<<32, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<32, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
