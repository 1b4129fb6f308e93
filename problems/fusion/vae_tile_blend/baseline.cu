// All meet; a kernel makes every pixel of this rank's tiles from latents, its own and those of
// peers; all meet again, so that no rank leaves while its latents are read.
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

__global__ void Blend(Args args) {
  const int pixels = 2 * args.side, overlap = 2 * args.edge, step = pixels - overlap;
  const int cols = args.cols, world = args.world, tiles = args.rows * args.cols;
  const int size = args.channels * pixels * pixels, all = (tiles + world - 1) / world * size;
  for (int n = blockIdx.x * blockDim.x + threadIdx.x; n < all; n += gridDim.x * blockDim.x) {
    const int tile = n / size * world + args.rank, i = tile / cols, j = tile % cols;
    const int c = n % size / pixels / pixels, y = n / pixels % pixels, x = n % pixels;
    const bool last_row = i + 1 == args.rows, last_col = j + 1 == cols;
    if (tile >= tiles || (y >= step && !last_row) || (x >= step && !last_col)) continue;
    const auto pixel = [&](int t, int py, int px) {
      const int plane = t / world * static_cast<int>(args.channels) + c;
      const int row = plane * static_cast<int>(args.side) + py / 2;
      return args.latent_peers[t % world][row * args.side + px / 2];
    };
    float value = pixel(tile, y, x);
    const float v = static_cast<float>(y) / overlap, h = static_cast<float>(x) / overlap;
    const bool top = i > 0 && y < overlap, left = j > 0 && x < overlap;
    if (top) value = v * value + (1 - v) * pixel(tile - cols, y + step, x);
    if (left) {
      float other = pixel(tile - 1, y, x + step);
      if (top) other = v * other + (1 - v) * pixel(tile - cols - 1, y + step, x + step);
      value = h * value + (1 - h) * other;
    }
    args.out[n] = value;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Blend<<<32, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
