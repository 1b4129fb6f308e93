// Lengths are on the device: NCCL gathers whole inputs, and a kernel takes the rows that there are.
constexpr int kBlocks = 64, kThreads = 256, kAligned = 64;
static ncclComm_t world;

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  world = allranks::NcclWorld(boot);
  allranks::Reserve((kAligned + args.world * args.rows * args.width) * sizeof(std::uint32_t));
}

__global__ void Take(Args args, const std::int32_t* lengths, const std::uint32_t* inputs) {
  std::int64_t start = 0;
  for (int source = 0; source < args.world; ++source) {
    const std::uint32_t* in = inputs + source * args.rows * args.width;
    const std::int64_t words = lengths[source] * args.width;
    for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < words; i += kBlocks * kThreads) {
      args.out[start * args.width + i] = in[i];
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) args.starts[source] = start;
    start += lengths[source];
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) args.starts[args.world] = start;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  auto* lengths = allranks::Reserved<std::int32_t>();
  auto* inputs = reinterpret_cast<std::uint32_t*>(lengths + kAligned);
  const std::size_t words = args.rows * args.width;
  allranks::NcclCheck(ncclGroupStart(), "ncclGroupStart");
  allranks::NcclCheck(ncclAllGather(args.length, lengths, 1, ncclInt32, world, stream),
                      "ncclAllGather");
  allranks::NcclCheck(ncclAllGather(args.in, inputs, words, ncclUint32, world, stream),
                      "ncclAllGather");
  allranks::NcclCheck(ncclGroupEnd(), "ncclGroupEnd");
  Take<<<kBlocks, kThreads, 0, stream>>>(args, lengths, inputs);
}
