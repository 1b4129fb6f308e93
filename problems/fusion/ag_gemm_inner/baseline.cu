// Kernel by kernel: slices go to all ranks as they are, all meet, each tile is transposed piece by
// piece and multiplied, and all meet again.
#include <allranks/flags.h>
#include <allranks/tile_mma.h>

struct Board {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t arrived[kMaxRanks];  // by rank: the last meeting that it has come to
};
constexpr int kBlocks = 16, kThreads = 128;

__global__ void Gather(Args args) {
  const std::int64_t runs = args.tiles * args.depth * 512;
  for (int n = blockIdx.x * kThreads + threadIdx.x; n < runs; n += kBlocks * kThreads) {
    for (int r = 0; r < args.world; ++r) {
      uint4* to = reinterpret_cast<uint4*>(args.scratch_peers[r] + 8192) + args.rank * runs;
      to[n] = reinterpret_cast<const uint4*>(args.a)[n];
    }
  }
}

__global__ void Meet(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncwarp();
  if (threadIdx.x < args.world) {
    Board* peer = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->arrived[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->arrived[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void __launch_bounds__(kThreads) Multiply(Args args) {
  __shared__ allranks::TileStage stage;
  __shared__ alignas(16) std::uint16_t square[64][72];
  allranks::TileProduct product(stage);
  const std::int64_t length = args.world * args.depth * 64, m = args.tiles * 64;
  const auto* a = reinterpret_cast<const std::uint16_t*>(args.scratch + 8192);
  for (std::int64_t i = blockIdx.x; i < 2 * args.tiles; i += gridDim.x) {
    const std::int64_t t = i / 2, half = i % 2 * 32;
    const auto* b = reinterpret_cast<const std::uint16_t*>(args.b) + half * length;
    product.Clear();
    for (std::int64_t first = 0; first < length; first += 64) {
      __syncthreads();
      for (int n = threadIdx.x; n < 4096; n += kThreads) {
        square[n % 64][n / 64] = a[(first + n / 64) * m + t * 64 + n % 64];
      }
      __syncthreads();
      product.Add(square, 72, b + first, length, 64);
    }
    product.Store(args.c + t * 64 * 64 + half, 64);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Gather<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Multiply<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
