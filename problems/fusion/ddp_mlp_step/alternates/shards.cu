// By owners: partial gradients stay at home, in one of two copies, until a flag says that those of
// this block are ready everywhere. Each rank reads its share of every tile from all ranks, makes the
// optimizer's step and stores weights and moments at all ranks; a second flag says so. A copy is
// overwritten in call k + 2, when all second flags of call k + 1 have come.
#include <allranks/flags.h>
#include <allranks/numbers.h>
#include <allranks/tile_mma.h>
using namespace allranks;

constexpr int kThreads = 256, kMaxBlocks = 48, kData = 8192;
using Half = std::uint16_t;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t steps[kMaxBlocks][kMaxRanks];  // 2 * call - 1: has multiplied; 2 * call: stored
};
static_assert(sizeof(Control) <= kData);

__device__ float Adam(float p, float g, float& m, float& v) {
  m = 0.875f * m + 0.125f * g, v = 0.984375f * fabsf(v) + 0.015625f * g * g;
  return p - 0.125f * (m / (sqrtf(v) + 0x1p-10f) + 0.03125f * p);
}

__device__ void Meet(const Args& args, std::uint32_t step) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->steps[blockIdx.x][args.rank], step);
    WaitAcquireSys(&mine->steps[blockIdx.x][threadIdx.x], step);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) Step(Args args) {
  __shared__ TileStage stage;
  __shared__ alignas(16) Half flipped[32][64];
  __shared__ alignas(16) float sums[2048];
  TileProduct product(stage);
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int thread = threadIdx.x, columns = args.cols + 2, column = blockIdx.x % columns;
  const int units = blockIdx.x / columns * 64;
  const auto halves = [](const void* tensor) { return static_cast<const Half*>(tensor); };
  const auto part = [&](int rank) {
    return reinterpret_cast<float*>(args.scratch_peers[rank] + kData) +
           (call % 2 * gridDim.x + blockIdx.x) * 2048;
  };
  // The first layer's z, 64 x 64 halves by rows, goes where the partial gradients are to be.
  Half* deltas = reinterpret_cast<Half*>(part(args.rank));
  for (int first = 0; first < 64 && column >= 2; first += 32) {
    for (int i = thread; i < 2048; i += kThreads) {
      flipped[i % 32][i / 32] = halves(args.dy)[i / 32 * 64 + first + i % 32];
    }
    __syncthreads();
    if (thread < kTileThreads) {
      product.Clear();
      product.Add(halves(args.w2) + units * 64, 64, flipped, 64, 64);
      product.Store(sums, 32);
    }
    __syncthreads();
    for (int i = thread; i < 2048; i += kThreads) {
      const int place = i / 32 * 64 + first + i % 32;
      const float slope = Number<__half>::ToFloat(halves(args.slope)[units * 64 + place]);
      deltas[place] = Number<__half>::FromFloat(slope * sums[i]);
    }
    __syncthreads();
  }
  if (thread < kTileThreads) {
    product.Clear();
    const Half* left = column < 2 ? halves(args.h) + units * 64 : deltas;
    const Half* right = column < 2 ? halves(args.dy) : halves(args.x) - 2 * 2048;
    product.Add(left, 64, right + column * 2048, 64, 64);
    product.Store(part(args.rank), 32);
  }
  Meet(args, 2 * call - 1);
  for (int i = args.rank + thread * args.world; i < 2048; i += kThreads * args.world) {
    float sum = 0;
    for (int r = 0; r < args.world; ++r) sum += part(r)[i];
    const std::int64_t at = (units + i / 32) * columns * 32 + column * 32 + i % 32;
    float m = args.m[at], v = args.v[at];
    const float next = Adam(args.param[at], sum, m, v);
    for (int r = 0; r < args.world; ++r) {
      args.new_param_peers[r][at] = next;
      args.new_m_peers[r][at] = m;
      args.new_v_peers[r][at] = v;
    }
  }
  Meet(args, 2 * call);
  if (thread == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Step<<<static_cast<int>(args.inner * (args.cols + 2)), kThreads, 0, stream>>>(args);
}
