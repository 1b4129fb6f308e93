// The whole backward pass in one kernel, which divides by the number of ranks, then one all-reduce.
constexpr int kThreads = 512;

static ncclComm_t world;

__device__ float Dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
__device__ float Clip(float v) { return fminf(fmaxf(v, -8.0f), 8.0f); }

// Layers [from, to), the highest one first. A thread has four places.
__global__ void __launch_bounds__(kThreads) Backward(Args args, int from, int to) {
  __shared__ int sums[2][kThreads / 32];
  const int at = 4 * threadIdx.x, n = args.n, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool inside = at < n;
  float4 d = {}, w = {}, x = {};
  if (inside) {
    d = *reinterpret_cast<const float4*>(args.error + at);
    w = *reinterpret_cast<const float4*>(args.w + (to - 1) * n + at);
    x = *reinterpret_cast<const float4*>(args.x + (to - 1) * n + at);
  }
  for (int layer = to - 1; layer >= from; --layer) {
    const int part = __reduce_add_sync(~0u, static_cast<int>(Dot(w, d)));
    if (lane == 0) sums[layer % 2][warp] = part;
    const float share = 1.0f / args.world;
    const float4 g = {d.x * x.x * share, d.y * x.y * share, d.z * x.z * share, d.w * x.w * share};
    const float4 product = {w.x * d.x, w.y * d.y, w.z * d.z, w.w * d.w};
    if (inside) {
      *reinterpret_cast<float4*>(args.grad + layer * n + at) = g;
      if (layer > from) {
        w = *reinterpret_cast<const float4*>(args.w + (layer - 1) * n + at);
        x = *reinterpret_cast<const float4*>(args.x + (layer - 1) * n + at);
      }
    }
    __syncthreads();  //@summed
    const int sum = __reduce_add_sync(~0u, lane < blockDim.x / 32 ? sums[layer % 2][lane] : 0);
    const float sign = sum > 0 ? 1.0f : sum < 0 ? -1.0f : 0.0f;
    d = {Clip(product.x + sign), Clip(product.y + sign), Clip(product.z + sign),
         Clip(product.w + sign)};
  }
}

extern "C" void setup(allranks::Boot& boot, const Args& args) { world = allranks::NcclWorld(boot); }

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Backward<<<1, (args.n / 4 + 31) / 32 * 32, 0, stream>>>(args, 0, args.layers);
  allranks::NcclCheck(ncclAllReduce(args.grad, args.grad, args.layers * args.n, ncclFloat32,
                                    ncclSum, world, stream),
                      "ncclAllReduce");
}
