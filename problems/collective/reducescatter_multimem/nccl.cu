// NCCL may round at every step, and adds up shards of one length: inputs become floats, and the
// last shard is filled up with zeros.
#include <allranks/numbers.h>

using Real = allranks::Number<__nv_bfloat16>;
constexpr int kBlocks = 64, kThreads = 256;
static ncclComm_t world;

static __host__ __device__ std::int64_t Shard(const Args& args) {
  return 8 * ((args.n + 8 * args.world - 1) / (8 * args.world));
}

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  world = allranks::NcclWorld(boot);
  allranks::Reserve((args.world + 1) * Shard(args) * sizeof(float));
}

__global__ void Widen(Args args, float* numbers) {
  const auto* in = reinterpret_cast<const Real::Bits*>(args.in);
  const std::int64_t count = args.world * Shard(args);
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    numbers[i] = i < args.n ? Real::ToFloat(in[i]) : 0;
  }
}

__global__ void Store(Args args, const float* sums) {
  const std::int64_t shard = Shard(args), begin = args.rank * shard;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < shard; i += kBlocks * kThreads) {
    if (begin + i < args.n) reinterpret_cast<Real::Bits*>(args.out)[i] = Real::FromFloat(sums[i]);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  float* numbers = allranks::Reserved<float>();
  float* sums = numbers + args.world * Shard(args);
  Widen<<<kBlocks, kThreads, 0, stream>>>(args, numbers);
  allranks::NcclCheck(
      ncclReduceScatter(numbers, sums, Shard(args), ncclFloat32, ncclSum, world, stream),
      "ncclReduceScatter");
  Store<<<kBlocks, kThreads, 0, stream>>>(args, sums);
}
