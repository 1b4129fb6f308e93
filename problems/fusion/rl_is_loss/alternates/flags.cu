// One block, sums pushed to all peers as plain floats, then a flag for each. Two sets of sums, used
// in turn: a rank that tells of call k + 1 has read the sums of call k, and nobody writes those of
// call k + 2 before it has told so.
#include <allranks/flags.h>

constexpr int kThreads = 512, kSums = 7;

struct Control {
  std::uint32_t calls;
  std::uint32_t told[kMaxRanks];
  float sums[2][kMaxRanks][kSums];
};

__global__ void __launch_bounds__(kThreads) PolicyLoss(Args args) {
  __shared__ float own[kSums];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  if (threadIdx.x < kSums) own[threadIdx.x] = 0;
  __syncthreads();
  float sums[kSums] = {0, 0, 0, 0, 0, 0, 0};
  for (std::int64_t i = threadIdx.x; i < args.n; i += kThreads) {
    const float d = args.logp[i] - args.old_logp[i], r = __expf(d), a = args.advantage[i];
    const float terms[kSums] = {1, -r * a, r, r * r, d, r - (1 + d), a};
    for (int j = 0; j < kSums; ++j) sums[j] += args.mask[i] != 0 ? terms[j] : 0;
  }
  for (int j = 0; j < kSums; ++j) {
    for (int d = 16; d > 0; d /= 2) sums[j] += __shfl_xor_sync(~0u, sums[j], d);
    if (threadIdx.x % 32 == 0) atomicAdd(&own[j], sums[j]);
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    for (int j = 0; j < kSums; ++j) peer->sums[call & 1][args.rank][j] = own[j];
    allranks::StoreReleaseSys(&peer->told[args.rank], call);
    allranks::WaitAcquireSys(&mine->told[threadIdx.x], call);
  }
  __syncthreads();
  float total[kSums] = {0, 0, 0, 0, 0, 0, 0};
  for (int r = 0; r < args.world; ++r) {
    for (int j = 0; j < kSums; ++j) total[j] += mine->sums[call & 1][r][j];
  }
  for (std::int64_t i = threadIdx.x; i < args.n; i += kThreads) {
    const float r = __expf(args.logp[i] - args.old_logp[i]);
    args.grad[i] = args.mask[i] != 0 ? __fdividef(-r * args.advantage[i], total[0]) : 0;
  }
  if (threadIdx.x == 0) {
    args.stats[0] = total[0];
    for (int j = 1; j < kSums; ++j) args.stats[j] = total[0] > 0 ? total[j] / total[0] : 0;
    mine->calls = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  PolicyLoss<<<1, kThreads, 0, stream>>>(args);
}
