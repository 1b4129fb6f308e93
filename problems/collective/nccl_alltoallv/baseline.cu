// One block after the other, in an order that all ranks share: only its two ends take part, and each
// has a kernel of NCCL for it alone.
static ncclComm_t world;

static std::int64_t Count(const Args& args, int source, int target) {
  return (args.slope * source + 2 * target + source * target + 1) % (args.rows + 1);
}

extern "C" void setup(allranks::Boot& boot, const Args& args) { world = allranks::NcclWorld(boot); }

extern "C" void launch(const Args& args, cudaStream_t stream) {
  using allranks::NcclCheck;
  const std::int64_t width = args.width, align = args.align;
  std::int64_t from = 0, to = 0;
  for (int source = 0; source < args.world; ++source) {
    for (int target = 0; target < args.world; ++target) {
      const std::int64_t count = Count(args, source, target), words = count * width;
      NcclCheck(ncclGroupStart(), "ncclGroupStart");
      if (source == args.rank) {
        const std::uint32_t* block = args.in + from * width;
        if (words > 0) NcclCheck(ncclSend(block, words, ncclUint32, target, world, stream), "ncclSend");
        from += count;
      }
      if (target == args.rank) {
        std::uint32_t* block = args.out + to * width;
        if (words > 0) NcclCheck(ncclRecv(block, words, ncclUint32, source, world, stream), "ncclRecv");
        to += (count + align - 1) / align * align;
      }
      NcclCheck(ncclGroupEnd(), "ncclGroupEnd");
    }
  }
}
