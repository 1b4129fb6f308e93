#include <allranks/flags.h>

// Three kernels: all ranks meet, one warp per row reads it word by word, all ranks meet again.

struct Board {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t arrived[kMaxRanks];  // by rank: the last meeting that it has come to
};

__global__ void Meet(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  if (threadIdx.x < args.world) {
    Board* peer = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->arrived[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->arrived[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Multiply(Args args) {
  const std::uint32_t* x = args.x_peers[(args.rank + 1) % args.world];
  const int lane = threadIdx.x % 32;
  for (std::int64_t row = blockIdx.x * 4 + threadIdx.x / 32; row < args.rows; row += 16 * 4) {
    std::uint32_t sum = 0;
    for (int c = lane; c < 256; c += 32) sum += x[row * 256 + c] * args.w[c];
    sum = __reduce_add_sync(~0u, sum);
    if (lane == 0) args.out[row] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Multiply<<<16, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
