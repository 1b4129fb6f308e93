// By reading: once the members are inside the call, a rank fetches their tokens and their shares
// from where they are, and lets them leave when it has them.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 256, kMaxBlocks = 32;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by rank: the last call it has entered
  std::uint32_t fetched[kMaxBlocks][kMaxRanks];  // by rank: the last call it has read from here
};

__global__ void __launch_bounds__(kThreads) AgRs(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % args.world]);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int first = args.rank / args.group * args.group, quads = static_cast<int>(args.quads);
  const int last = min(first + static_cast<int>(args.group), args.world);
  const int begin = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&peer->entered[blockIdx.x][args.rank], call);
    WaitAcquireSys(&mine->entered[blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
  int at = 0, own = 0;
  for (int r = first; r < last; ++r) {
    const int rows = args.rows_peers[r][0];
    const float4* from = reinterpret_cast<const float4*>(args.x_peers[r]);
    float4* to = reinterpret_cast<float4*>(args.gathered) + at * quads;
#pragma unroll 4
    for (int i = begin; i < rows * quads; i += stride) to[i] = from[i];
    if (begin == 0) args.counts[r - first] = rows;
    if (r == args.rank) own = at;
    at += rows;
  }
  for (int i = begin; i < args.rows[0] * quads; i += stride) {
    float4 sum = {};
#pragma unroll 4
    for (int r = first; r < last; ++r) {
      const float4 v = reinterpret_cast<const float4*>(args.y_peers[r])[own * quads + i];
      sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
    }
    reinterpret_cast<float4*>(args.out)[i] = sum;
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&peer->fetched[blockIdx.x][args.rank], call);
    WaitAcquireSys(&mine->fetched[blockIdx.x][threadIdx.x], call);
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.most * args.quads + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  AgRs<<<blocks, kThreads, 0, stream>>>(args);
}
