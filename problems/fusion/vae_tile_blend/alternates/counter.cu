// Two kernels. The first pushes all edges, element by element of a tile, and every block adds one
// to its rank's counter at every rank. The second waits until the counters have all blocks of all
// ranks, and blends. Since every rank waits for all others in each call, none is two calls ahead of
// another, and two sets of edges are enough.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kBlocks = 32, kThreads = 256;

struct Control {
  std::uint32_t calls;
  std::uint32_t arrived[kMaxRanks];  // by rank: blocks of all calls
};

// Where latent (y, x) of a tile's left edge (0), top edge (1) or corner (2) lies at its owner.
__device__ float* Slot(const Args& args, int tile, int plane, int n, int y, int x,
                       std::uint32_t call) {
  const int side = args.side, edge = args.edge, world = args.world, channels = args.channels;
  const int slots = (args.rows * args.cols + world - 1) / world;
  const int size = channels * edge * (2 * side + edge), width = n == 1 ? side : edge;
  const int height = n == 0 ? side : edge;
  return reinterpret_cast<float*>(args.scratch_peers[tile % world] + 256) +
         (call % 2 * slots + tile / world) * size + n * channels * side * edge +
         (plane * height + y) * width + x;
}

__global__ void __launch_bounds__(kThreads) Push(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  const int side = args.side, edge = args.edge, step = side - edge, cols = args.cols;
  const int size = args.channels * side * side, tiles = args.rows * cols, world = args.world;
  const int all = (tiles + world - 1) / world * size;
  for (int n = blockIdx.x * kThreads + threadIdx.x; n < all; n += kBlocks * kThreads) {
    const int tile = n / size * world + args.rank, plane = n % size / side / side;
    const int y = n / side % side, x = n % side;
    const bool below = y >= step && tile / cols + 1 < args.rows,
               right = x >= step && tile % cols + 1 < cols;
    if (tile >= tiles || !(below || right)) continue;
    const float value = args.latent[n];
    if (right) *Slot(args, tile + 1, plane, 0, y, x - step, call) = value;
    if (below) *Slot(args, tile + cols, plane, 1, y - step, x, call) = value;
    if (right && below) {
      *Slot(args, tile + cols + 1, plane, 2, y - step, x - step, call) = value;
    }
  }
  __syncthreads();
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    AddReleaseSys(&peer->arrived[args.rank], 1u);
  }
}

__device__ float Mix(float a, float b, float share) { return a * (1 - share) + b * share; }

__global__ void __launch_bounds__(kThreads) Blend(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  if (threadIdx.x < args.world) WaitAcquireSys(&mine->arrived[threadIdx.x], call * kBlocks);
  __syncthreads();
  const int side = args.side, edge = args.edge, step = side - edge, cols = args.cols;
  const int size = args.channels * side * side, tiles = args.rows * cols, world = args.world;
  const int all = (tiles + world - 1) / world * size;
  const float unit = 0.5f / static_cast<float>(edge);
  for (int n = blockIdx.x * kThreads + threadIdx.x; n < all; n += kBlocks * kThreads) {
    const int tile = n / size * world + args.rank, i = tile / cols, j = tile % cols;
    const int plane = n % size / side / side, y = n / side % side, x = n % side;
    if (tile >= tiles || (y >= step && i + 1 < args.rows) || (x >= step && j + 1 < cols)) continue;
    const bool top = i > 0 && y < edge, left = j > 0 && x < edge;
    const float own = args.latent[n];
    const float above = top ? *Slot(args, tile, plane, 1, y, x, call) : own;
    const float before = left ? *Slot(args, tile, plane, 0, y, x, call) : own;
    const float both = top && left ? *Slot(args, tile, plane, 2, y, x, call) : before;
    for (int dy = 0; dy < 2; ++dy) {
      const float v = top ? static_cast<float>(2 * y + dy) * unit : 1;
      const float b = Mix(above, own, v), a = left ? Mix(both, before, v) : b;
      const float h = static_cast<float>(2 * x) * unit;
      reinterpret_cast<float2*>(args.out)[(2 * (n / side) + dy) * side + x] =
          left ? float2{Mix(a, b, h), Mix(a, b, h + unit)} : float2{b, b};
    }
  }
}

__global__ void Advance(Args args) { ++reinterpret_cast<Control*>(args.scratch)->calls; }

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Push<<<kBlocks, kThreads, 0, stream>>>(args);
  Blend<<<kBlocks, kThreads, 0, stream>>>(args);
  Advance<<<1, 1, 0, stream>>>(args);
}
