// All blocks in one group: NCCL sends and receives them at the same time, in one kernel. A block of
// no rows is neither sent nor received. The rank's own block goes through NCCL like the others.
static ncclComm_t world;

static std::int64_t Count(const Args& args, int source, int target) {
  return (args.slope * source + 2 * target + source * target + 1) % (args.rows + 1);
}

extern "C" void setup(allranks::Boot& boot, const Args& args) { world = allranks::NcclWorld(boot); }

extern "C" void launch(const Args& args, cudaStream_t stream) {
  using allranks::NcclCheck;
  const std::int64_t width = args.width;
  std::int64_t from = 0, to = 0;
  NcclCheck(ncclGroupStart(), "ncclGroupStart");
  for (int peer = 0; peer < args.world; ++peer) {
    const std::int64_t sent = Count(args, args.rank, peer);
    const std::int64_t received = Count(args, peer, args.rank);
    if (sent > 0) {  //@send
      NcclCheck(ncclSend(args.in + from * width, sent * width, ncclUint32, peer, world, stream),
                "ncclSend");
    }
    if (received > 0) {  //@receive
      NcclCheck(ncclRecv(args.out + to * width, received * width, ncclUint32, peer, world, stream),
                "ncclRecv");
    }
    from += sent;  //@from
    to += (received + args.align - 1) / args.align * args.align;  //@to
  }
  NcclCheck(ncclGroupEnd(), "ncclGroupEnd");
}
