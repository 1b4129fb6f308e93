// Layer by layer, one step after the other. Weights are gathered again in the backward pass.
#include <map>

constexpr int kThreads = 128;

struct Buffers {
  float *weights, *gradients, *h, *d;  // [layers][world * m]; h has one layer more; d [world * m]
};
static ncclComm_t world;
static std::map<const void*, Buffers> buffers;  // by the case's input

__device__ float Clip(float v) { return fminf(fmaxf(v, -8.0f), 8.0f); }

__global__ void Forward(Args args, Buffers own, int l) {
  const std::int64_t n = args.world * args.m, i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  const float h = l == 0 ? args.x[i] : own.h[l * n + i];
  own.h[(l + 1) * n + i] = Clip(own.weights[l * n + i] * h + args.x[i]);
}

__global__ void Backward(Args args, Buffers own, int l) {
  const std::int64_t n = args.world * args.m, i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= n) return;
  const float h = l == 0 ? args.x[i] : own.h[l * n + i];
  const float d = l + 1 == args.layers ? own.h[(l + 1) * n + i] : own.d[i];
  own.gradients[l * n + i] = d * h * args.scale[i];
  own.d[i] = Clip(own.weights[l * n + i] * d + h);
}

static void Allocate(const Args& args) {
  Buffers& own = buffers[args.shard];
  const std::size_t layer = sizeof(float) * args.world * args.m;
  cudaMalloc(&own.weights, layer * args.layers);
  cudaMalloc(&own.gradients, layer * args.layers);
  cudaMalloc(&own.h, layer * (args.layers + 1));
  cudaMalloc(&own.d, layer);
}

static void Gather(const Args& args, const Buffers& own, int l, cudaStream_t stream) {
  float* weights = own.weights + l * args.world * args.m;
  allranks::NcclCheck(
      ncclAllGather(args.shard + l * args.m, weights, args.m, ncclFloat32, world, stream),
      "ncclAllGather");
}

static void Scatter(const Args& args, const Buffers& own, int l, cudaStream_t stream) {
  const float* gradients = own.gradients + l * args.world * args.m;
  allranks::NcclCheck(ncclReduceScatter(gradients, args.grad + l * args.m, args.m, ncclFloat32,
                                        ncclSum, world, stream),
                      "ncclReduceScatter");
}

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  world = allranks::NcclWorld(boot);
  Allocate(args);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const Buffers own = buffers.at(args.shard);
  const int layers = args.layers, blocks = (args.world * args.m + kThreads - 1) / kThreads;
  for (int l = 0; l < layers; ++l) {
    Gather(args, own, l, stream);
    Forward<<<blocks, kThreads, 0, stream>>>(args, own, l);
  }
  for (int l = layers - 1; l >= 0; --l) {
    Gather(args, own, l, stream);
    Backward<<<blocks, kThreads, 0, stream>>>(args, own, l);
    Scatter(args, own, l, stream);
  }
}
