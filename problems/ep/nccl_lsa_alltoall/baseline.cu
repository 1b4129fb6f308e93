#include <nccl_device.h>

// Four kernels and one buffer: store the blocks word by word into the windows, meet, copy what has
// arrived, and meet again before the next call may store.
constexpr int kThreads = 256, kMaxCases = 64;

struct Case {
  const void* key;
  ncclWindow_t window;
};
static Case cases[kMaxCases];
static ncclDevComm device;

__global__ void Store(Args args, ncclWindow_t window) {
  const std::int64_t words = args.slots * args.hidden, block = words + args.slots;
  const std::int64_t first = blockIdx.x * blockDim.x + threadIdx.x;
  for (int peer = 0; peer < args.world; ++peer) {
    std::uint32_t* to = static_cast<std::uint32_t*>(ncclGetLsaPointer(window, 0, peer));
    for (std::int64_t i = first; i < block; i += gridDim.x * blockDim.x) {
      to[args.rank * block + i] =
          i < words ? args.tokens[peer * words + i] : args.expert[peer * args.slots + i - words];
    }
  }
}

__global__ void Meet(ncclDevComm comm) {
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), 0);
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}

__global__ void Copy(Args args, ncclWindow_t window) {
  const std::int64_t words = args.slots * args.hidden, block = words + args.slots;
  const std::int64_t first = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t* arrived = static_cast<std::uint32_t*>(ncclGetLocalPointer(window, 0));
  for (int r = 0; r < args.world; ++r) {
    for (std::int64_t i = first; i < block; i += gridDim.x * blockDim.x) {
      if (i < words) {
        args.out[r * words + i] = arrived[r * block + i];
      } else {
        args.out_expert[r * args.slots + i - words] = arrived[r * block + i];
      }
    }
  }
}

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  ncclComm_t world = allranks::NcclWorld(boot);
  if (device.nRanks == 0) {
    ncclDevCommRequirements requirements = {};
    requirements.lsaBarrierCount = 1;
    allranks::NcclCheck(ncclDevCommCreate(world, &requirements, &device), "ncclDevCommCreate");
  }
  Case* mine = cases;
  while (mine->key != nullptr) ++mine;
  mine->key = args.tokens;
  const std::size_t bytes = 4 * args.world * args.slots * (args.hidden + 1);
  void* memory = nullptr;
  allranks::NcclCheck(ncclMemAlloc(&memory, bytes), "ncclMemAlloc");
  allranks::NcclCheck(
      ncclCommWindowRegister(world, memory, bytes, &mine->window, NCCL_WIN_COLL_SYMMETRIC),
      "ncclCommWindowRegister");
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Case* mine = cases;
  while (mine->key != args.tokens) ++mine;
  Store<<<16, kThreads, 0, stream>>>(args, mine->window);
  Meet<<<1, 32, 0, stream>>>(device);
  Copy<<<16, kThreads, 0, stream>>>(args, mine->window);
  Meet<<<1, 32, 0, stream>>>(device);
}
