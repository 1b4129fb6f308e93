// The rank's own block is copied by a kernel of ours on a second stream, while NCCL exchanges the
// blocks of other ranks.
static ncclComm_t world;
static cudaStream_t side;
static cudaEvent_t fork, join;

static std::int64_t Count(const Args& args, int source, int target) {
  return (args.slope * source + 2 * target + source * target + 1) % (args.rows + 1);
}

__global__ void Copy(std::uint32_t* to, const std::uint32_t* from, std::int64_t words) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
    to[i] = from[i];
  }
}

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  world = allranks::NcclWorld(boot);
  if (side != nullptr) return;
  cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  using allranks::NcclCheck;
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(side, fork, 0);
  std::int64_t from = 0, to = 0;
  NcclCheck(ncclGroupStart(), "ncclGroupStart");
  for (int peer = 0; peer < args.world; ++peer) {
    const std::int64_t sent = Count(args, args.rank, peer);
    const std::int64_t received = Count(args, peer, args.rank);
    const std::uint32_t* source = args.in + from * args.width;
    std::uint32_t* target = args.out + to * args.width;
    from += sent;
    to += (received + args.align - 1) / args.align * args.align;
    if (peer == args.rank) {
      const std::int64_t words = sent * args.width;
      if (words > 0) Copy<<<(words + 1023) / 1024, 256, 0, side>>>(target, source, words);
      continue;
    }
    if (sent > 0) {
      NcclCheck(ncclSend(source, sent * args.width, ncclUint32, peer, world, stream), "ncclSend");
    }
    if (received > 0) {
      NcclCheck(ncclRecv(target, received * args.width, ncclUint32, peer, world, stream), "ncclRecv");
    }
  }
  NcclCheck(ncclGroupEnd(), "ncclGroupEnd");
  cudaEventRecord(join, side);
  cudaStreamWaitEvent(stream, join, 0);
}
