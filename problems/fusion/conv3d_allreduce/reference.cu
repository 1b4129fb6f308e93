#include <allranks/flags.h>

// A block has tiles of 64 items of a plane; an item is four outputs of a pixel. Three threads share
// an item, one for each plane of the kernel. Then there is a thread for each output, which adds up
// the three and sends the sum to all ranks, while later tiles are convolved. At last the block
// takes the parts of all others, tile by tile.
//
// Each float travels in a word of 64 bits beside the number of the call: who sees the number has
// the float, without a fence. Slots exist twice, for odd and even calls. A rank sends for call
// k + 2 after it has the parts of all ranks for call k + 1, and who has sent one of them has
// ended its call k and has read its slots.

using namespace allranks;

constexpr int kItems = 64, kThreads = 4 * kItems, kMaxBlocks = 64;
constexpr int kMaxInputs = 8, kMaxOutputs = 16, kMaxCols = 64;
constexpr int kSlots = 1024;  // bytes before the slots: calls by block

// At rank `at`: the part of rank `from`.
__device__ std::uint64_t* Slot(const Args& args, int at, int from, std::uint32_t call) {
  const std::int64_t words = args.depth * args.rows * args.cols * args.outputs;
  return reinterpret_cast<std::uint64_t*>(args.scratch_peers[at] + kSlots) +
         (call % 2 * args.world + from) * words;
}

// Adds float i of all other ranks. All are on their way before the first is needed; but there is
// no sense in looking before the next rank, which sends to this one last, has been heard of.
__device__ float Receive(const Args& args, int i, std::uint32_t call, float sum) {
  const std::uint64_t* last = Slot(args, args.rank, (args.rank + 1) % args.world, call) + i;
  while (LoadRelaxedSys(last) >> 32 != call) {
  }
  std::uint64_t words[kMaxRanks];
  bool missing;
  do {
    missing = false;
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world || r == args.rank) continue;
      words[r] = LoadRelaxedSys(Slot(args, args.rank, r, call) + i);  //@look
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < args.world && r != args.rank) missing |= words[r] >> 32 != call;
    }
  } while (missing);
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {
    if (r >= args.world || r == args.rank) continue;
    sum += __uint_as_float(static_cast<std::uint32_t>(words[r]));
  }
  return sum;
}

__device__ void Add(float4& sum, float4 a, float b) {
  sum = {sum.x + a.x * b, sum.y + a.y * b, sum.z + a.z * b, sum.w + a.w * b};
}

__global__ void __launch_bounds__(kThreads) Convolve(Args args, int tiles) {
  __shared__ float4 w[27 * kMaxInputs * kMaxOutputs / 4], sums[3][kItems];
  __shared__ float4 planes[3][(kItems + 2 * kMaxCols + 2) * kMaxInputs / 4];
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;  //@epoch
  const int rows = args.rows, cols = args.cols, inputs = args.inputs, quads = args.outputs / 4;
  const int pixels = rows * cols, items = pixels * quads, all = args.depth * tiles;
  const int t = threadIdx.x % kItems, dz = threadIdx.x / kItems;
  const float4* x = planes[dz % 3];
  const float4* kernel = reinterpret_cast<const float4*>(args.w);
  const int taps = 27 * inputs * quads;
  float4 first_tap = {};  // on its way while the first planes are loaded
  if (threadIdx.x < taps) first_tap = kernel[threadIdx.x];
  for (int i = kThreads + threadIdx.x; i < taps; i += kThreads) w[i] = kernel[i];

  for (int tile = blockIdx.x; tile < all; tile += gridDim.x) {
    const int z = tile / tiles, first = tile % tiles * kItems, count = min(kItems, items - first);
    // Pixels of a plane that the tile needs.
    const int begin = max(first / quads - cols - 1, 0);
    const int end = min((first + count - 1) / quads + cols + 2, pixels);
    const int plane = z + dz - 1;
    const bool exists = dz < 3 && plane >= 0 && plane < args.depth;
    if (exists) {
      const auto* from = reinterpret_cast<const float4*>(args.x) +
                         (std::int64_t{plane} * pixels + begin) * (inputs / 4);
      for (int i = t; i < (end - begin) * (inputs / 4); i += kItems) planes[dz][i] = from[i];
    }
    if (tile == blockIdx.x && threadIdx.x < taps) w[threadIdx.x] = first_tap;
    __syncthreads();  //@staged
    float4 sum = {0, 0, 0, 0};
    if (exists && t < count) {
      const int pixel = (first + t) / quads, quad = (first + t) % quads;
      const int row = pixel / cols, col = pixel % cols;
#pragma unroll
      for (int tap = 0; tap < 9; ++tap) {
        const int r = row + tap / 3 - 1, c = col + tap % 3 - 1;
        if (r < 0 || r >= rows || c < 0 || c >= cols) continue;
        for (int j = 0; j < inputs; j += 4) {
          const float4 v = x[((r * cols + c - begin) * inputs + j) / 4];
          const float4* weights = w + ((9 * dz + tap) * inputs + j) * quads + quad;
          Add(sum, weights[0], v.x);
          Add(sum, weights[quads], v.y);
          Add(sum, weights[2 * quads], v.z);
          Add(sum, weights[3 * quads], v.w);
        }
      }
    }
    if (dz < 3) sums[dz][t] = sum;
    __syncthreads();  //@summed
    if (threadIdx.x < 4 * count) {
      const int i = (z * items + first) * 4 + threadIdx.x;
      const float* third = reinterpret_cast<const float*>(sums[0]) + threadIdx.x;
      const float part = third[0] + third[4 * kItems] + third[8 * kItems];
      const std::uint64_t word = std::uint64_t{call} << 32 | __float_as_uint(part);
      for (int step = 1; step < args.world; ++step) {
        const int to = (args.rank + step) % args.world;
        StoreRelaxedSys(Slot(args, to, args.rank, call) + i, word);  //@put
      }
      args.y[i] = part;
    }
  }

  for (int tile = blockIdx.x; tile < all; tile += gridDim.x) {
    const int z = tile / tiles, first = tile % tiles * kItems;
    if (threadIdx.x < 4 * min(kItems, items - first)) {
      const int i = (z * items + first) * 4 + threadIdx.x;
      const float sum = args.y[i];
      args.y[i] = Receive(args, i, call, sum);
    }
  }
  if (threadIdx.x == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int items = args.rows * args.cols * args.outputs / 4;
  const int tiles = (items + kItems - 1) / kItems;  // of a plane
  const std::int64_t all = args.depth * tiles;
  Convolve<<<all < kMaxBlocks ? all : kMaxBlocks, kThreads, 0, stream>>>(args, tiles);
}
