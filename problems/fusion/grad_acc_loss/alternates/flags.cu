// One block, sums pushed to all peers as plain floats, then a flag for each. Two sets of sums, used
// in turn: a rank that tells of call k + 1 has read the sums of call k, and nobody writes those of
// call k + 2 before it has told so.
#include <allranks/flags.h>

constexpr int kThreads = 512;

struct Control {
  std::uint32_t calls;
  std::uint32_t told[kMaxRanks];
  float2 sums[2][kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) MeanLoss(Args args) {
  __shared__ float2 of_warp[kThreads / 32];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  float2 own = {0, 0};
  for (std::int64_t i = threadIdx.x; i < args.n; i += kThreads) {
    const float m = args.mask[i];
    own = {own.x + m * args.loss[i], own.y + m};
  }
  for (int d = 16; d > 0; d /= 2) {
    own = {own.x + __shfl_xor_sync(~0u, own.x, d), own.y + __shfl_xor_sync(~0u, own.y, d)};
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x < args.world) {
    own = {0, 0};
    for (const float2& w : of_warp) own = {own.x + w.x, own.y + w.y};
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    peer->sums[call & 1][args.rank] = own;
    allranks::StoreReleaseSys(&peer->told[args.rank], call);
    allranks::WaitAcquireSys(&mine->told[threadIdx.x], call);
  }
  __syncthreads();
  float2 total = {0, 0};
  for (int r = 0; r < args.world; ++r) {
    const float2 s = mine->sums[call & 1][r];
    total = {total.x + s.x, total.y + s.y};
  }
  const float factor = total.y > 0 ? args.world / total.y : 0;
  for (std::int64_t i = threadIdx.x; i < args.n; i += kThreads) {
    args.grad[i] = args.mask[i] * factor;
  }
  if (threadIdx.x == 0) {
    args.mean[0] = total.y > 0 ? total.x / total.y : 0;
    mine->calls = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  MeanLoss<<<1, kThreads, 0, stream>>>(args);
}
