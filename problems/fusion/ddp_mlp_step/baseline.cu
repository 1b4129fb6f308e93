// Kernel by kernel: z, all products, a meeting, sums of all ranks' gradients and the optimizer's
// step, and a last meeting.
#include <allranks/flags.h>
#include <allranks/numbers.h>
#include <allranks/tile_mma.h>
using namespace allranks;

constexpr int kBlocks = 16, kThreads = 128;
using Half = std::uint16_t;

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];
};

// Behind the flags: dy by samples, z, and gradients.
__device__ Half* Flipped(const Args& args) { return reinterpret_cast<Half*>(args.scratch + 256); }
__device__ Half* Deltas(const Args& args) { return Flipped(args) + 64 * 64; }
__device__ float* Gradients(const Args& args, int rank) {
  return reinterpret_cast<float*>(args.scratch_peers[rank] + 8448 + args.inner * 8192);
}
__device__ const Half* Halves(const void* tensor) { return static_cast<const Half*>(tensor); }

__device__ float Adam(float p, float g, float& m, float& v) {
  m = 0.875f * m + 0.125f * g, v = 0.984375f * fabsf(v) + 0.015625f * g * g;
  return p - 0.125f * (m / (sqrtf(v) + 0x1p-10f) + 0.03125f * p);
}

__global__ void Flip(Args args) {
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < 4096; i += kBlocks * kThreads) {
    Flipped(args)[i] = Halves(args.dy)[i % 64 * 64 + i / 64];
  }
}

__global__ void Delta(Args args) {
  __shared__ TileStage stage;
  __shared__ alignas(16) float sums[2048];
  TileProduct product(stage);
  const int units = blockIdx.x / 2 * 64, first = blockIdx.x % 2 * 32;
  product.Add(Halves(args.w2) + units * 64, 64, Flipped(args) + first * 64, 64, 64);
  product.Store(sums, 32);
  __syncthreads();
  for (int i = threadIdx.x; i < 2048; i += kThreads) {
    const int place = (units + i / 32) * 64 + first + i % 32;
    const float slope = Number<__half>::ToFloat(Halves(args.slope)[place]);
    Deltas(args)[place] = Number<__half>::FromFloat(slope * sums[i]);
  }
}

__global__ void Multiply(Args args) {
  __shared__ TileStage stage;
  TileProduct product(stage);
  const int columns = args.cols + 2, column = blockIdx.x % columns;
  const std::int64_t units = blockIdx.x / columns * 64, width = columns * 32;
  const Half* left = column < 2 ? Halves(args.h) : Deltas(args);
  const Half* right = column < 2 ? Halves(args.dy) : Halves(args.x) - 2 * 2048;
  product.Add(left + units * 64, 64, right + column * 2048, 64, 64);
  product.Store(Gradients(args, args.rank) + units * width + column * 32, width);
}

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

__global__ void Update(Args args) {
  const std::int64_t count = args.inner * 2048 * (args.cols + 2);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    float sum = 0, m = args.m[i], v = args.v[i];
    for (int r = 0; r < args.world; ++r) sum += Gradients(args, r)[i];
    args.new_param[i] = Adam(args.param[i], sum, m, v);
    args.new_m[i] = m;
    args.new_v[i] = v;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Flip<<<kBlocks, kThreads, 0, stream>>>(args);
  Delta<<<2 * args.inner, kThreads, 0, stream>>>(args);
  Multiply<<<args.inner * (args.cols + 2), kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Update<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
