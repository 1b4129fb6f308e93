// Kernel by kernel: weights as halves where all can read them, a meeting, the whole backward pass of
// a batch in each block, a meeting, sums of gradients and the optimizer's step, and a last meeting.
#include <allranks/flags.h>
#include <allranks/numbers.h>
#include <allranks/tile_mma.h>
using namespace allranks;

constexpr int kBlocks = 16, kThreads = 256, kData = 4096, kMatrix = 4096;
using Half = std::uint16_t;

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];
};

__device__ float Adam(float p, float g, float& m, float& v) {
  m = 0.875f * m + 0.125f * g, v = 0.984375f * fabsf(v) + 0.015625f * g * g;
  return p - 0.125f * (m / (sqrtf(v) + 0x1p-10f) + 0.03125f * p);
}

__device__ Half ToHalf(float x) { return Number<__half>::FromFloat(x); }

__device__ int Shard(const Args& args) { return 8 * ((1024 + args.world - 1) / args.world); }
__device__ Half* Weights(const Args& args, int rank) {
  return reinterpret_cast<Half*>(args.scratch_peers[rank] + kData);
}
__device__ float* Gradients(const Args& args, int rank, int batch) {
  return reinterpret_cast<float*>(args.scratch_peers[rank] + 16384) + batch * 2 * kMatrix;
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

__global__ void Stage(Args args) {
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < Shard(args); i += kBlocks * kThreads) {
    Weights(args, args.rank)[i] = ToHalf(args.param[i]);
  }
}

__global__ void __launch_bounds__(kThreads) Train(Args args) {
  __shared__ TileStage stage;
  __shared__ alignas(16) float tile[kMatrix];
  const int thread = threadIdx.x, shard = Shard(args);
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

  for (int i = thread; i < kMatrix; i += kThreads) {
    own[kX * kMatrix + i % 64 * 64 + i / 64] = x[i];
  }
  for (int i = thread; i < 2 * kMatrix; i += kThreads) {
    const Half weight = Weights(args, i / shard)[i % shard];
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
  float* to = Gradients(args, args.rank, blockIdx.x);
  multiply(own + kError * kMatrix, own + kHidden * kMatrix, to + kMatrix);
  multiply(own + kTurned * kMatrix, own + kErrorX * kMatrix, tile);
  for (int i = thread; i < kMatrix; i += kThreads) {
    own[kDelta * kMatrix + i] = own[kHidden * kMatrix + i] != 0 ? ToHalf(tile[i]) : 0;
  }
  multiply(own + kDelta * kMatrix, x, to);
}

__global__ void Update(Args args) {
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = kBlocks * kThreads;
  const int shard = Shard(args);
  for (int i = first; i < shard && args.rank * shard + i < 2 * kMatrix; i += stride) {
    float sum = 0, m = args.m[i], v = args.v[i];
    for (int r = 0; r < args.world; ++r) {
      for (int b = 0; b < args.batches; ++b) sum += Gradients(args, r, b)[args.rank * shard + i];
    }
    args.new_param[i] = Adam(args.param[i], sum, m, v);
    args.new_m[i] = m;
    args.new_v[i] = v;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Train<<<static_cast<int>(args.batches), kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Update<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
