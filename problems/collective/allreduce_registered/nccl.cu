// Sums are to be rounded once, and NCCL may round them at every step: it adds up floats.
#include <allranks/numbers.h>

using Real = allranks::Number<__half>;
constexpr int kBlocks = 64, kThreads = 256;

static ncclComm_t world;

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  world = allranks::NcclWorld(boot);
  allranks::Reserve(args.n * sizeof(float));
}

__global__ void Widen(Args args, float* sums) {
  const auto* in = reinterpret_cast<const Real::Bits*>(args.in);
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += kBlocks * kThreads) {
    sums[i] = Real::ToFloat(in[i]);
  }
}

__global__ void Round(Args args, const float* sums) {
  auto* out = reinterpret_cast<Real::Bits*>(args.out);
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += kBlocks * kThreads) {
    out[i] = Real::FromFloat(sums[i]);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  float* sums = allranks::Reserved<float>();
  Widen<<<kBlocks, kThreads, 0, stream>>>(args, sums);
  allranks::NcclCheck(ncclAllReduce(sums, sums, args.n, ncclFloat32, ncclSum, world, stream),
                      "ncclAllReduce");
  Round<<<kBlocks, kThreads, 0, stream>>>(args, sums);
}
