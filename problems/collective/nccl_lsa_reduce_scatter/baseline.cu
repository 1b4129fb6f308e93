#include <allranks/numbers.h>
#include <nccl_device.h>

// Four kernels and one buffer: copy the whole input into the own window, meet, add up number by
// number from all windows, and meet again before the next call may overwrite them.
using Number = allranks::Number<__nv_bfloat16>;
constexpr int kThreads = 256, kMaxCases = 64;

struct Case {
  const void* key;
  ncclWindow_t window;
};
static Case cases[kMaxCases];
static ncclDevComm device;

__global__ void Stage(Args args, ncclWindow_t window) {
  Number::Bits* to = static_cast<Number::Bits*>(ncclGetLocalPointer(window, 0));
  const Number::Bits* in = reinterpret_cast<const Number::Bits*>(args.in);
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.world * args.n;
       i += gridDim.x * blockDim.x) {
    to[i] = in[i];
  }
}

__global__ void Meet(ncclDevComm comm) {
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), 0);
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}

__global__ void Add(Args args, ncclWindow_t window) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n;
       i += gridDim.x * blockDim.x) {
    float sum = 0;
    for (int r = 0; r < args.world; ++r) {
      const void* row = ncclGetLsaPointer(window, args.rank * args.n * sizeof(Number::Bits), r);
      sum += Number::ToFloat(static_cast<const Number::Bits*>(row)[i]);
    }
    reinterpret_cast<Number::Bits*>(args.out)[i] = Number::FromFloat(sum);
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
  mine->key = args.in;
  const std::size_t bytes = args.world * args.n * 2;
  void* memory = nullptr;
  allranks::NcclCheck(ncclMemAlloc(&memory, bytes), "ncclMemAlloc");
  allranks::NcclCheck(
      ncclCommWindowRegister(world, memory, bytes, &mine->window, NCCL_WIN_COLL_SYMMETRIC),
      "ncclCommWindowRegister");
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Case* mine = cases;
  while (mine->key != args.in) ++mine;
  Stage<<<16, kThreads, 0, stream>>>(args, mine->window);
  Meet<<<1, 32, 0, stream>>>(device);
  Add<<<16, kThreads, 0, stream>>>(args, mine->window);
  Meet<<<1, 32, 0, stream>>>(device);
}
