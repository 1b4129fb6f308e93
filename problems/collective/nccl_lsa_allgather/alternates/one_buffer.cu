#include <nccl_device.h>

// One buffer and two meetings: nobody stores before all have come, which says that they have read
// what the call before has left, and nobody reads before all have stored.
using Coop = ncclCoopCta;
constexpr int kMaxBlocks = 32, kThreads = 256, kMaxCases = 64;

struct Case {
  const void* key;  // the case's input
  ncclWindow_t window;
};
static Case cases[kMaxCases];
static ncclDevComm device;

__global__ void __launch_bounds__(kThreads)
    AllGather(Args args, ncclDevComm comm, ncclWindow_t window) {
  ncclLsaBarrierSession<Coop> barrier(Coop(), comm, ncclTeamTagLsa(), blockIdx.x);
  const std::int64_t vectors = args.n / 4;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const uint4* in = reinterpret_cast<const uint4*>(args.in);
  uint4* out = reinterpret_cast<uint4*>(args.out);

  barrier.sync(Coop(), cuda::memory_order_acq_rel);  //@free
  const std::size_t row = args.rank * vectors * sizeof(uint4);
  for (std::int64_t i = first; i < vectors; i += stride) {
    const uint4 v = in[i];
    for (int step = 1; step < args.world; ++step) {
      const int peer = (args.rank + step) % args.world;
      static_cast<uint4*>(ncclGetLsaPointer(window, row, peer))[i] = v;  //@put
    }
    out[args.rank * vectors + i] = v;
  }
  barrier.sync(Coop(), cuda::memory_order_acq_rel);  //@meet
  const uint4* arrived = static_cast<const uint4*>(ncclGetLocalPointer(window, 0));
  for (std::int64_t i = first; i < vectors; i += stride) {
    for (int r = 0; r < args.world; ++r) {
      if (r != args.rank) out[r * vectors + i] = arrived[r * vectors + i];
    }
  }
}

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  ncclComm_t world = allranks::NcclWorld(boot);
  if (device.nRanks == 0) {
    ncclDevCommRequirements requirements = {};
    requirements.lsaBarrierCount = kMaxBlocks;
    allranks::NcclCheck(ncclDevCommCreate(world, &requirements, &device), "ncclDevCommCreate");
  }
  Case* mine = cases;
  while (mine->key != nullptr) ++mine;
  mine->key = args.in;
  const std::size_t bytes = args.world * args.n * sizeof(std::uint32_t);
  void* memory = nullptr;
  allranks::NcclCheck(ncclMemAlloc(&memory, bytes), "ncclMemAlloc");
  allranks::NcclCheck(
      ncclCommWindowRegister(world, memory, bytes, &mine->window, NCCL_WIN_COLL_SYMMETRIC),
      "ncclCommWindowRegister");
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Case* mine = cases;
  while (mine->key != args.in) ++mine;
  const std::int64_t needed = (args.n / 4 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllGather<<<blocks, kThreads, 0, stream>>>(args, device, mine->window);
}
