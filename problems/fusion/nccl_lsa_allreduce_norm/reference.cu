#include <nccl_device.h>

// One shot by multicast: every block copies its rows into this rank's window, meets the same block
// of all ranks once, and lets the switch add up the rows of all. The window has two buffers in
// turn: a peer that is in call k + 1 has met this rank in call k, but the switch may still be
// reading there for it, while one in call k + 2 has met it in call k + 1, behind all reads of call
// k.
using Coop = ncclCoopCta;
constexpr int kMaxBlocks = 32, kThreads = 256, kMaxHidden = 4096, kMaxCases = 64;
constexpr int kSteps = kMaxHidden / 4 / kThreads;  // vectors of a row per thread
constexpr float kEpsilon = 1e-5f;

struct Case {
  const void* key;  // the case's first input
  ncclWindow_t window;
};
static Case cases[kMaxCases];
static ncclDevComm device;

// A window: counters of calls, one per block, and two buffers of `rows * hidden` floats.
constexpr std::size_t kHeader = kMaxBlocks * sizeof(std::uint32_t);

__device__ float4 operator+(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__device__ float Square(float4 a) { return a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w; }
__device__ float4 Scaled(float4 a, float4 b, float factor) {
  return make_float4(a.x * b.x * factor, a.y * b.y * factor, a.z * b.z * factor,
                     a.w * b.w * factor);
}

// The sum over all threads of a block, in every thread.
__device__ float SumOfBlock(float value) {
  __shared__ float warps[kThreads / 32];
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(~0u, value, lane);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();  //@squared
  float sum = 0;
  for (int warp = 0; warp < kThreads / 32; ++warp) sum += warps[warp];
  __syncthreads();  // before the next row
  return sum;
}

// The window is stored by one address and read by another, that of the multicast object.
__device__ void FenceAliases() { asm volatile("fence.proxy.alias;" ::: "memory"); }

__device__ float4 SumOfRanks(const float4* at) {
  float4 sum;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(sum.x), "=f"(sum.y), "=f"(sum.z), "=f"(sum.w)
               : "l"(at)
               : "memory");
  return sum;
}

__global__ void __launch_bounds__(kThreads)
    AllReduceNorm(Args args, ncclDevComm comm, ncclWindow_t window) {
  ncclLsaBarrierSession<Coop> barrier(Coop(), comm, ncclTeamTagLsa(), blockIdx.x);
  std::uint32_t* calls = static_cast<std::uint32_t*>(ncclGetLocalPointer(window, 0)) + blockIdx.x;
  const std::uint32_t call = *calls + 1;  //@epoch
  const std::int64_t quads = args.hidden / 4;
  const std::size_t buffer = kHeader + call % 2 * args.rows * args.hidden * sizeof(float);
  const float4* in = reinterpret_cast<const float4*>(args.in);
  const float4* residual = reinterpret_cast<const float4*>(args.residual);
  const float4* weight = reinterpret_cast<const float4*>(args.weight);

  float4* staged = static_cast<float4*>(ncclGetLocalPointer(window, buffer));
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    for (int i = threadIdx.x; i < quads; i += kThreads)
      staged[row * quads + i] = in[row * quads + i];  //@stage
  }
  FenceAliases();
  barrier.sync(Coop(), cuda::memory_order_acq_rel);  //@meet
  FenceAliases();
  const void* all = ncclGetLsaMultimemPointer(window, buffer, comm);
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    float4 h[kSteps];
    float squares = 0;  // of this row
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const int i = threadIdx.x + k * kThreads;
      if (i >= quads) continue;
      const std::int64_t at = row * quads + i;
      const float4 sum = SumOfRanks(static_cast<const float4*>(all) + at);
      h[k] = sum + residual[at];
      reinterpret_cast<float4*>(args.stream)[at] = h[k];
      squares += Square(h[k]);
    }
    const float total = SumOfBlock(squares);
    const float factor = rsqrtf(total / args.hidden + kEpsilon);
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const int i = threadIdx.x + k * kThreads;
      if (i >= quads) continue;
      reinterpret_cast<float4*>(args.norm)[row * quads + i] = Scaled(weight[i], h[k], factor);
    }
  }
  if (threadIdx.x == 0) *calls = call;  //@advance
}

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  ncclComm_t world = allranks::NcclWorld(boot);
  if (device.nRanks == 0) {
    ncclDevCommRequirements requirements = {};
    requirements.lsaBarrierCount = kMaxBlocks;
    requirements.lsaMultimem = true;
    allranks::NcclCheck(ncclDevCommCreate(world, &requirements, &device), "ncclDevCommCreate");
  }
  Case* mine = cases;
  while (mine->key != nullptr) ++mine;
  mine->key = args.in;
  const std::size_t bytes = kHeader + 2 * args.rows * args.hidden * sizeof(float);
  void* memory = nullptr;
  allranks::NcclCheck(ncclMemAlloc(&memory, bytes), "ncclMemAlloc");
  allranks::NcclCheck(
      ncclCommWindowRegister(world, memory, bytes, &mine->window, NCCL_WIN_COLL_SYMMETRIC),
      "ncclCommWindowRegister");
  cudaMemset(memory, 0, kHeader);
  cudaDeviceSynchronize();
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Case* mine = cases;
  while (mine->key != args.in) ++mine;
  const int blocks = args.rows < kMaxBlocks ? args.rows : kMaxBlocks;
  AllReduceNorm<<<blocks, kThreads, 0, stream>>>(args, device, mine->window);
}
