#include <allranks/flags.h>
#include <allranks/tile_mma.h>

// One kernel multiplies into the own output, all ranks meet, one kernel copies the own rows to all
// others word by word, all meet again.

struct Board {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t arrived[kMaxRanks];  // by rank: the last meeting that it has come to
};

__global__ void __launch_bounds__(128) Multiply(Args args) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  const std::int64_t k = args.depth * 64;
  for (std::int64_t t = blockIdx.x; t < args.tiles; t += gridDim.x) {
    product.Clear();
    product.Add(reinterpret_cast<const std::uint16_t*>(args.a) + t * 64 * k, k, args.b, k, k);
    product.Store(args.c + (args.rank * args.tiles + t) * 64 * 32, 32);
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

__global__ void Copy(Args args) {
  const std::int64_t count = args.tiles * 64 * 32, first = args.rank * count;
  for (std::int64_t i = blockIdx.x * 128 + threadIdx.x; i < count; i += gridDim.x * 128) {
    for (int r = 0; r < args.world; ++r) {
      if (r != args.rank) args.c_peers[r][first + i] = args.c[first + i];
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Multiply<<<8, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Copy<<<8, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
