// All meet; a kernel with a thread per row reads every entry where it is; all meet again, so that
// no rank leaves while its entries are read.
#include <allranks/flags.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncwarp();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Multiply(Args args) {
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < args.rows;
       row += gridDim.x * blockDim.x) {
    float sum = 0;
    for (int j = 0; j < args.per_row; ++j) {
      const int column = args.columns[args.index[row * args.per_row + j]];
      const int entries = args.entries, owner = column / entries;
      sum += args.value[row * args.per_row + j] * args.x_peers[owner][column - owner * entries];
    }
    args.y[row] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Multiply<<<32, 64, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
