// Rows arrive by source, and a kernel orders them by expert.
constexpr int kBlocks = 64, kThreads = 256;

static ncclComm_t world;

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  world = allranks::NcclWorld(boot);
  allranks::Reserve(args.world * args.experts * args.n * sizeof(std::uint32_t));
}

__global__ void Order(Args args, const std::uint32_t* came) {
  const std::int64_t n = args.n, experts = args.experts, count = args.world * experts * n;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    const std::int64_t row = i / n, source = row / experts, expert = row % experts;
    args.out[(expert * args.world + source) * n + i % n] = came[i];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  auto* came = allranks::Reserved<std::uint32_t>();
  allranks::NcclCheck(ncclAlltoAll(args.in, came, args.experts * args.n, ncclUint32, world, stream),
                      "ncclAlltoAll");
  Order<<<kBlocks, kThreads, 0, stream>>>(args, came);
}
