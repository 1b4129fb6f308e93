// By pulling: every rank leaves its weights as halves where all can read them, and its gradients
// next to them; flags, block by block, say that they are there. Each block multiplies a batch with
// weights that it fetched for itself, and the owners fetch gradients. Everything exists once, so a
// call ends when all blocks of all ranks have read.
#include <allranks/flags.h>
#include <allranks/numbers.h>
#include <allranks/tile_mma.h>
using namespace allranks;

constexpr int kThreads = 256, kMaxBlocks = 4, kData = 4096, kMatrix = 4096;
using Half = std::uint16_t;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t steps[kMaxRanks * kMaxBlocks];  // 3 meetings in each call
};

// All blocks of all ranks.
__device__ void Meet(const Args& args, std::uint32_t step) {
  __syncthreads();
  const int thread = threadIdx.x, all = args.world * gridDim.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  if (thread < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread]);
    StoreReleaseSys(&peer->steps[args.rank * gridDim.x + blockIdx.x], step);
  }
  if (thread < all) WaitAcquireSys(&mine->steps[thread], step);
  __syncthreads();
}

__device__ float Adam(float p, float g, float& m, float& v) {
  m = 0.875f * m + 0.125f * g, v = 0.984375f * fabsf(v) + 0.015625f * g * g;
  return p - 0.125f * (m / (sqrtf(v) + 0x1p-10f) + 0.03125f * p);
}

__device__ Half ToHalf(float x) { return Number<__half>::FromFloat(x); }

__global__ void __launch_bounds__(kThreads) Step(Args args) {
  __shared__ TileStage stage;
  __shared__ alignas(16) float tile[kMatrix];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int thread = threadIdx.x, shard = 8 * ((1024 + args.world - 1) / args.world);
  const int first = blockIdx.x * kThreads + thread, stride = gridDim.x * kThreads;
  const auto weights = [&](int r) { return reinterpret_cast<Half*>(args.scratch_peers[r] + kData); };
  const auto grads = [&](int r, int b) {
    return reinterpret_cast<float*>(args.scratch_peers[r] + 16384) + b * 2 * kMatrix;
  };
  // Matrices of this block: weights, the second layer's turned, samples, and what follows.
  enum { kW1, kW2, kTurned, kX, kHidden, kHiddenX, kError, kErrorX, kDelta, kCount };
  Half* own = reinterpret_cast<Half*>(args.scratch + 16384 + gridDim.x * 8 * kMatrix) +
              blockIdx.x * kCount * kMatrix;
  const Half* x = reinterpret_cast<const Half*>(args.x) + blockIdx.x * kMatrix;
  const Half* target = reinterpret_cast<const Half*>(args.target) + blockIdx.x * kMatrix;
  // 64 x 64, both factors by rows along the depth.
  const auto multiply = [&](const Half* a, const Half* b, float* to) {
    __syncthreads();
    for (int half = 0; half < 2 && thread < kTileThreads; ++half) {
      TileProduct product(stage);
      TileProduct::Meet();
      product.Add(a, 64, b + half * 2048, 64, 64);
      product.Store(to + half * 32, 64);
    }
    __syncthreads();
  };
  // As a matrix, and as its transpose 64 * 64 elements further.
  const auto put = [&](int to, auto f) {
    for (int i = thread; i < kMatrix; i += kThreads) {
      const Half value = ToHalf(f(i));
      own[to * kMatrix + i] = value;
      own[(to + 1) * kMatrix + i % 64 * 64 + i / 64] = value;
    }
  };

  for (int i = first; i < shard; i += stride) weights(args.rank)[i] = ToHalf(args.param[i]);
  for (int i = thread; i < kMatrix; i += kThreads) {
    own[kX * kMatrix + i % 64 * 64 + i / 64] = x[i];
  }
  Meet(args, 3 * call - 2);
  for (int i = thread; i < 2 * kMatrix; i += kThreads) {
    const Half weight = weights(i / shard)[i % shard];
    own[i] = weight;
    if (i >= kMatrix) own[kTurned * kMatrix + i % 64 * 64 + i % kMatrix / 64] = weight;
  }
  multiply(own + kW1 * kMatrix, own + kX * kMatrix, tile);
  put(kHidden, [&](int i) { return fmaxf(tile[i], 0); });
  multiply(own + kW2 * kMatrix, own + kHiddenX * kMatrix, tile);
  put(kError, [&](int i) {
    const float t = Number<__half>::ToFloat(target[i]);
    return static_cast<float>((tile[i] > t) - (tile[i] < t));
  });
  float* to = grads(args.rank, blockIdx.x);
  multiply(own + kError * kMatrix, own + kHidden * kMatrix, to + kMatrix);
  multiply(own + kTurned * kMatrix, own + kErrorX * kMatrix, tile);
  for (int i = thread; i < kMatrix; i += kThreads) {
    own[kDelta * kMatrix + i] = own[kHidden * kMatrix + i] != 0 ? ToHalf(tile[i]) : 0;
  }
  multiply(own + kDelta * kMatrix, x, to);
  Meet(args, 3 * call - 1);
  for (int i = first; i < shard && args.rank * shard + i < 2 * kMatrix; i += stride) {
    float sum = 0, m = args.m[i], v = args.v[i];
    for (int r = 0; r < args.world; ++r) {
      for (int b = 0; b < gridDim.x; ++b) sum += grads(r, b)[args.rank * shard + i];
    }
    args.new_param[i] = Adam(args.param[i], sum, m, v);
    args.new_m[i] = m;
    args.new_v[i] = v;
  }
  Meet(args, 3 * call);
  if (thread == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Step<<<static_cast<int>(args.batches), kThreads, 0, stream>>>(args);
}
