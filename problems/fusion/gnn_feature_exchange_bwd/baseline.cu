#include <allranks/flags.h>

// All ranks meet, one block walks through the lists of all ranks in order and adds every gradient
// to its row, and all meet again, so that no rank leaves while its lists are read.

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

__global__ void Clear(Args args) {
  for (int i = threadIdx.x; i < args.rows * 4 * args.quads; i += blockDim.x) args.out[i] = 0;
}

__global__ void Add(Args args) {
  const int width = 4 * args.quads;
  for (int s = 0; s < args.world; ++s) {
    int begin = 0;
    for (int r = 0; r < args.rank; ++r) begin += args.counts_peers[s][r];
    for (int i = begin; i < begin + args.counts_peers[s][args.rank]; ++i) {
      const int row = args.ids_peers[s][i];
      for (int j = threadIdx.x; j < width; j += blockDim.x) {
        args.out[row * width + j] += args.grads_peers[s][i * width + j];
      }
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Clear<<<1, 512, 0, stream>>>(args);
  Add<<<1, 64, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
