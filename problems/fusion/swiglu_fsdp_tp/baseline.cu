// Kernel by kernel: weights to the partner, all meet, the hidden layer, its product with `down`, all
// meet, and each adds up what the ranks of its column have. Nothing overlaps.
#include <allranks/flags.h>
#include <allranks/numbers.h>
#include <allranks/tile_mma.h>

struct Board {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 16, kThreads = 128, kFloats = 64 * 32;
using Bits16 = std::uint16_t;

// Behind the flags: the partner's weights, the hidden layer, partial sums.
struct Places {
  std::int64_t k, f, gates, all;
  __device__ explicit Places(const Args& args)
      : k(args.depth * 64), f(args.inner * 64), gates(k * f), all(2 * gates + args.cols * 32 * f) {}
  __device__ Bits16* Weights(const Args& args, int at) const {
    return reinterpret_cast<Bits16*>(args.scratch_peers[at] + 8192);
  }
  __device__ Bits16* Hidden(const Args& args) const { return Weights(args, args.rank) + all; }
  __device__ float* Parts(const Args& args, int at) const {
    return reinterpret_cast<float*>(Weights(args, at) + all + args.tiles * 128 * f);
  }
};

__global__ void Gather(Args args) {
  const Places places(args);
  uint4* to = reinterpret_cast<uint4*>(places.Weights(args, args.rank ^ 1));
  const std::int64_t gates = places.gates / 8;
  for (int n = blockIdx.x * kThreads + threadIdx.x; n < places.all / 8; n += kBlocks * kThreads) {
    to[n] = n < gates       ? reinterpret_cast<const uint4*>(args.gate)[n]
            : n < 2 * gates ? reinterpret_cast<const uint4*>(args.up)[n - gates]
                            : reinterpret_cast<const uint4*>(args.down)[n - 2 * gates];
  }
}

__global__ void Meet(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncwarp();
  if (threadIdx.x < args.world) {
    Board* peer = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->reached[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void __launch_bounds__(kThreads) Hide(Args args) {
  __shared__ allranks::TileStage stage;
  __shared__ alignas(16) float gates[kFloats], ups[kFloats];
  allranks::TileProduct product(stage);
  const Places places(args);
  const std::int64_t k = places.k, f = places.f;
  for (std::int64_t i = blockIdx.x; i < args.tiles * f / 16; i += kBlocks) {
    const std::int64_t row = i / (f / 16) * 64, column = i % (f / 16) * 32, j = column % f;
    const Bits16* x = reinterpret_cast<const Bits16*>(args.x) + row * k;
    const Bits16* gate = reinterpret_cast<const Bits16*>(args.gate);
    const Bits16* up = reinterpret_cast<const Bits16*>(args.up);
    if (column >= f) gate = places.Weights(args, args.rank), up = gate + places.gates;
    product.Clear();
    product.Add(x, k, gate + j * k, k, k);
    product.Store(gates, 32);
    product.Clear();
    product.Add(x, k, up + j * k, k, k);
    product.Store(ups, 32);
    __syncthreads();
    for (int n = threadIdx.x; n < kFloats; n += kThreads) {
      const float g = gates[n] / 8, u = ups[n] / 8;
      places.Hidden(args)[(row + n / 32) * 2 * f + column + n % 32] =
          allranks::Number<__half>::FromFloat(g / (1 + __expf(-g)) * u);
    }
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kThreads) Multiply(Args args) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  const Places places(args);
  const std::int64_t f = places.f;
  for (std::int64_t i = blockIdx.x; i < args.tiles * args.cols; i += kBlocks) {
    const std::int64_t row = i / args.cols * 64, column = i % args.cols * 32;
    const Bits16* hidden = places.Hidden(args) + row * 2 * f;
    const Bits16* theirs = places.Weights(args, args.rank) + 2 * places.gates + column * f;
    product.Clear();
    product.Add(hidden, 2 * f, reinterpret_cast<const Bits16*>(args.down) + column * f, f, f);
    product.Add(hidden + f, 2 * f, theirs, f, f);
    product.Store(places.Parts(args, args.rank) + row * args.cols * 32 + column, args.cols * 32);
  }
}

__global__ void Sum(Args args) {
  const Places places(args);
  for (int n = blockIdx.x * kThreads + threadIdx.x; n < args.tiles * args.cols * kFloats;
       n += kBlocks * kThreads) {
    float sum = 0;
    for (int r = args.rank % 2; r < args.world; r += 2) sum += places.Parts(args, r)[n];
    args.y[n] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Gather<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Hide<<<kBlocks, kThreads, 0, stream>>>(args);
  Multiply<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<kBlocks, kThreads, 0, stream>>>(args);
}
