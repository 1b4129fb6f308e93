// One kernel that reads neighbours' latents where they are. Blocks do first what needs no
// neighbour, while ranks tell each other that they have entered; each thread has two pixels of two
// rows. A rank leaves when all have told that they are done with its latents.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kBlocks = 48, kThreads = 256;

struct Control {
  std::uint32_t calls[kBlocks];
  std::uint32_t entered[kMaxRanks];
  std::uint32_t done[kMaxRanks][kBlocks];
};

__device__ float Mix(float a, float b, float share) { return a * (1 - share) + b * share; }

__global__ void __launch_bounds__(kThreads) BlendTiles(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int thread = threadIdx.x, block = blockIdx.x, world = args.world;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread % world]);
  const std::uint32_t call = mine->calls[block] + 1;
  if (block == 0 && thread < world) StoreReleaseSys(&peer->entered[args.rank], call);
  const int side = args.side, edge = args.edge, step = side - edge, cols = args.cols;
  const int channels = args.channels, size = channels * side * side, tiles = args.rows * cols;
  const float unit = 0.5f / static_cast<float>(edge);
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1) {
      if (thread < world) WaitAcquireSys(&mine->entered[thread], call);
      __syncthreads();
    }
    const int all = (tiles + world - 1) / world * size;
    for (int n = block * kThreads + thread; n < all; n += kBlocks * kThreads) {
      const int tile = n / size * world + args.rank, i = tile / cols, j = tile % cols;
      const int plane = n % size / side / side, y = n / side % side, x = n % side;
      if (tile >= tiles || (y >= step && i + 1 < args.rows) || (x >= step && j + 1 < cols))
        continue;
      const bool top = i > 0 && y < edge, left = j > 0 && x < edge;
      if ((top || left) != (pass == 1)) continue;
      const auto latent = [&](int t, int ly, int lx) {
        return args
            .latent_peers[t % world][((t / world * channels + plane) * side + ly) * side + lx];
      };
      const float own = latent(tile, y, x);
      const float above = top ? latent(tile - cols, y + step, x) : own;
      const float before = left ? latent(tile - 1, y, x + step) : own;
      const float both = top && left ? latent(tile - cols - 1, y + step, x + step) : before;
      for (int dy = 0; dy < 2; ++dy) {
        const float v = top ? static_cast<float>(2 * y + dy) * unit : 1;
        const float b = Mix(above, own, v), a = left ? Mix(both, before, v) : b;
        const float h = static_cast<float>(2 * x) * unit;
        reinterpret_cast<float2*>(args.out)[(2 * (n / side) + dy) * side + x] =
            left ? float2{Mix(a, b, h), Mix(a, b, h + unit)} : float2{b, b};
      }
    }
  }
  __syncthreads();
  if (thread < world) {
    StoreReleaseSys(&peer->done[args.rank][block], call);
    WaitAcquireSys(&mine->done[thread][block], call);
  }
  if (thread == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  BlendTiles<<<kBlocks, kThreads, 0, stream>>>(args);
}
