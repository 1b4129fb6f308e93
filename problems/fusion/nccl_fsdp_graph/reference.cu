// One gather of all shards, one kernel for both passes, one scatter: at these sizes a call of NCCL
// takes longer to begin and to end than its bytes take. The shards of all layers are one piece of
// memory on every rank, so gathered weights, and gradients before they are scattered, are by owner,
// then by layer.
#include <map>

constexpr int kMaxLayers = 8, kThreads = 128;

struct Buffers {
  float *weights, *gradients;  // [world][layers][m]
};
static ncclComm_t world;
static std::map<const void*, Buffers> buffers;  // by the case's input

__device__ float Clip(float v) { return fminf(fmaxf(v, -8.0f), 8.0f); }

// A block for places of one owner.
__global__ void __launch_bounds__(kThreads) Pass(Args args, Buffers own) {
  const std::int64_t j = blockIdx.x * kThreads + threadIdx.x, m = args.m, owner = blockIdx.y;
  if (j >= m) return;
  const int layers = args.layers;
  const float* weights = own.weights + owner * layers * m + j;
  float* gradients = own.gradients + owner * layers * m + j;
  const float x = args.x[owner * m + j], scale = args.scale[owner * m + j];
  float w[kMaxLayers], h[kMaxLayers + 1];
#pragma unroll
  for (int l = 0; l < kMaxLayers; ++l) w[l] = l < layers ? weights[l * m] : 0;
  h[0] = x;
  float d = x;
#pragma unroll
  for (int l = 0; l < kMaxLayers; ++l) {
    h[l + 1] = Clip(w[l] * h[l] + x);
    if (l + 1 == layers) d = h[l + 1];  //@last
  }
#pragma unroll
  for (int l = kMaxLayers - 1; l >= 0; --l) {
    if (l >= layers) continue;
    gradients[l * m] = d * h[l] * scale;
    d = Clip(w[l] * d + h[l]);  //@back
  }
}

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  world = allranks::NcclWorld(boot);
  Buffers& own = buffers[args.shard];
  const std::size_t bytes = sizeof(float) * args.world * args.layers * args.m;
  cudaMalloc(&own.weights, bytes);
  cudaMalloc(&own.gradients, bytes);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  using allranks::NcclCheck;
  const Buffers own = buffers.at(args.shard);
  const std::int64_t words = args.layers * args.m;
  NcclCheck(ncclAllGather(args.shard, own.weights, words, ncclFloat32, world, stream),
            "ncclAllGather");
  const dim3 grid((args.m + kThreads - 1) / kThreads, args.world);
  Pass<<<grid, kThreads, 0, stream>>>(args, own);  //@pass
  NcclCheck(ncclReduceScatter(own.gradients, args.grad, words, ncclFloat32, ncclSum, world, stream),
            "ncclReduceScatter");
}
