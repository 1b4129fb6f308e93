#include <nccl_device.h>

// Five kernels and one buffer: copy the input into the own window, meet, add up float by float from
// all windows, meet again before the next call may overwrite them, and norm.
constexpr int kThreads = 256, kMaxCases = 64;

struct Case {
  const void* key;
  ncclWindow_t window;
};
static Case cases[kMaxCases];
static ncclDevComm device;

__global__ void Stage(Args args, ncclWindow_t window) {
  float* to = static_cast<float*>(ncclGetLocalPointer(window, 0));
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.rows * args.hidden;
       i += gridDim.x * blockDim.x) {
    to[i] = args.in[i];
  }
}

__global__ void Meet(ncclDevComm comm) {
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), 0);
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}

__global__ void Add(Args args, ncclWindow_t window) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.rows * args.hidden;
       i += gridDim.x * blockDim.x) {
    float sum = args.residual[i];
    for (int r = 0; r < args.world; ++r)
      sum += static_cast<const float*>(ncclGetLsaPointer(window, 0, r))[i];
    args.stream[i] = sum;
  }
}

__global__ void Norm(Args args) {
  __shared__ float part[kThreads];
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const float* h = args.stream + row * args.hidden;
    float squares = 0;
    for (int j = threadIdx.x; j < args.hidden; j += kThreads) squares += h[j] * h[j];
    part[threadIdx.x] = squares;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
    const float root = sqrtf(part[0] / args.hidden + 1e-5f);
    for (int j = threadIdx.x; j < args.hidden; j += kThreads)
      args.norm[row * args.hidden + j] = args.weight[j] * h[j] / root;
    __syncthreads();
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
  const std::size_t bytes = args.rows * args.hidden * sizeof(float);
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
  Norm<<<16, kThreads, 0, stream>>>(args);
}
