// One call.
static ncclComm_t world;

extern "C" void setup(allranks::Boot& boot, const Args&) { world = allranks::NcclWorld(boot); }

extern "C" void launch(const Args& args, cudaStream_t stream) {
  allranks::NcclCheck(
      ncclBroadcast(args.in, args.out, args.n, ncclUint32, args.root, world, stream),
      "ncclBroadcast");
}
