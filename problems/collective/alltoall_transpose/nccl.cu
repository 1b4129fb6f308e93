// Columns are put one behind the other by peer, two numbers at a time, before they are sent.
constexpr int kBlocks = 64, kThreads = 256;

static ncclComm_t world;

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  world = allranks::NcclWorld(boot);
  allranks::Reserve(args.world * args.tokens * args.cols * 2);
}

__global__ void Order(Args args, std::uint32_t* parts) {
  const auto* in = reinterpret_cast<const std::uint32_t*>(args.in);
  const std::int64_t width = args.cols / 2, part = args.tokens * width, count = args.world * part;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    const std::int64_t peer = i / part, token = i % part / width;
    parts[i] = in[(token * args.world + peer) * width + i % width];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  auto* parts = allranks::Reserved<std::uint32_t>();
  Order<<<kBlocks, kThreads, 0, stream>>>(args, parts);
  allranks::NcclCheck(
      ncclAlltoAll(parts, args.out, args.tokens * args.cols / 2, ncclUint32, world, stream),
      "ncclAlltoAll");
}
