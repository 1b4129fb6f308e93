#include <allranks/flags.h>
#include <allranks/tile_mma.h>

// One kernel multiplies, all ranks meet, one kernel adds up what it reads from all, all meet again.

struct Board {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t arrived[kMaxRanks];  // by rank: the last meeting that it has come to
};

__global__ void __launch_bounds__(128) Multiply(Args args) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  const std::int64_t k = args.depth * 64;
  for (std::int64_t tile = blockIdx.x; tile < args.world * args.tiles; tile += gridDim.x) {
    product.Clear();
    product.Add(reinterpret_cast<const std::uint16_t*>(args.a) + tile * 64 * k, k, args.b, k, k);
    product.Store(reinterpret_cast<float*>(args.scratch + 8192) + tile * 64 * 32, 32);
  }
}

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

__global__ void Sum(Args args) {
  const std::int64_t count = args.tiles * 64 * 32;
  for (std::int64_t i = blockIdx.x * 128 + threadIdx.x; i < count; i += gridDim.x * 128) {
    float sum = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += reinterpret_cast<float*>(args.scratch_peers[r] + 8192)[args.rank * count + i];
    }
    args.c[i] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Multiply<<<16, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<16, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
