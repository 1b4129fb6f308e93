#include <allranks/flags.h>

// Pieces of 128 outputs have owners in turn. Block b of every rank has the same pieces. It pushes
// its parts to their owners, and a flag; adds up the parts of all ranks where it is the owner
// and pushes the sums to everybody, and another flag. Slots exist twice, for odd and even calls:
// as all wait for all, nobody is two calls ahead.

using namespace allranks;
constexpr int kThreads = 128, kMaxBlocks = 64, kSlots = 8192;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t reached[2][kMaxBlocks][kMaxRanks];  // by step and rank: the last call
};

__device__ float Part(const Args& args, int i) {
  const int rows = args.rows, cols = args.cols, inputs = args.inputs, outputs = args.outputs;
  const int pixel = i / outputs, z = pixel / cols / rows, row = pixel / cols % rows;
  float sum = 0;
#pragma unroll 3
  for (int tap = 0; tap < 27; ++tap) {
    const int d = z + tap / 9 - 1, r = row + tap / 3 % 3 - 1, c = pixel % cols + tap % 3 - 1;
    if (d < 0 || d >= args.depth || r < 0 || r >= rows || c < 0 || c >= cols) continue;
    const float* x = args.x + ((d * rows + r) * cols + c) * inputs;
    for (int j = 0; j < inputs; j += 4) {
      const float* w = args.w + (tap * inputs + j) * outputs + i % outputs;
      const float4 v = *reinterpret_cast<const float4*>(x + j);
      sum += w[0] * v.x + w[outputs] * v.y + w[2 * outputs] * v.z + w[3 * outputs] * v.w;
    }
  }
  return sum;
}

__device__ void Meet(const Args& args, int step, std::uint32_t call) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[step][blockIdx.x][args.rank], call);
    const Control* mine = reinterpret_cast<const Control*>(args.scratch);
    WaitAcquireSys(&mine->reached[step][blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) Convolve(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int all = args.depth * args.rows * args.cols * args.outputs, world = args.world;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const auto Slots = [&](int at) {  // parts by rank, then sums
    return reinterpret_cast<float*>(args.scratch_peers[at] + kSlots) + call % 2 * (world + 1) * all;
  };
  for (int i = first; i < all; i += stride) {
    Slots(i / kThreads % world)[args.rank * all + i] = Part(args, i);
  }
  Meet(args, 0, call);
  for (int i = first; i < all; i += stride) {
    if (i / kThreads % world != args.rank) continue;
    float sum = 0;
    for (int r = 0; r < world; ++r) sum += Slots(args.rank)[r * all + i];
    for (int r = 0; r < world; ++r) Slots(r)[world * all + i] = sum;
  }
  Meet(args, 1, call);
  for (int i = first; i < all; i += stride) args.y[i] = Slots(args.rank)[world * all + i];
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t all = args.depth * args.rows * args.cols * args.outputs;
  const std::int64_t pieces = (all + kThreads - 1) / kThreads;
  Convolve<<<pieces < kMaxBlocks ? pieces : kMaxBlocks, kThreads, 0, stream>>>(args);
}
