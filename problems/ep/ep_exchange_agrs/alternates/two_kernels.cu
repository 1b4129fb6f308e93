// Two kernels, a collective each. Tokens are written straight into the members' `gathered`, after
// all have entered the call; then shares are read from the members' `y`. One meeting at the end
// says that tokens have arrived and that shares were read.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 256, kMaxBlocks = 32;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint64_t entered[kMaxRanks];               // by rank: call and rows
  std::uint32_t finished[kMaxBlocks][kMaxRanks];  // by rank: the last call it has finished
};

// The first rank of the subgroup.
__device__ int First(const Args& args) { return args.rank / args.group * args.group; }

__global__ void __launch_bounds__(kThreads) Gather(Args args) {
  __shared__ int rows[kMaxRanks];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;
  const int first = First(args), last = min(first + static_cast<int>(args.group), args.world);
  const int r = first + threadIdx.x, quads = static_cast<int>(args.quads);
  if (r < last) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[r]);
    if (blockIdx.x == 0) StoreReleaseSys(&peer->entered[args.rank], call << 32 | args.rows[0]);
    std::uint64_t word;
    do {
      word = LoadAcquireSys(&mine->entered[r]);
    } while (word >> 32 < call);
    rows[r] = static_cast<int>(word);
    if (blockIdx.x == 0) args.counts[threadIdx.x] = static_cast<int>(word);
  }
  __syncthreads();
  int at = 0;
  for (int i = first; i < args.rank; ++i) at += rows[i];
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < args.rows[0] * quads;
       i += gridDim.x * kThreads) {
    const float4 v = reinterpret_cast<const float4*>(args.x)[i];
    for (int to = first; to < last; ++to) {
      reinterpret_cast<float4*>(args.gathered_peers[to])[at * quads + i] = v;
    }
  }
}

__global__ void __launch_bounds__(kThreads) Reduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int first = First(args), last = min(first + static_cast<int>(args.group), args.world);
  const int quads = static_cast<int>(args.quads);
  int at = 0;
  for (int r = first; r < args.rank; ++r) at += args.counts[r - first];
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < args.rows[0] * quads;
       i += gridDim.x * kThreads) {
    float4 sum = {};
#pragma unroll 4
    for (int r = first; r < last; ++r) {
      const float4 v = reinterpret_cast<const float4*>(args.y_peers[r])[at * quads + i];
      sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
    }
    reinterpret_cast<float4*>(args.out)[i] = sum;
  }
  __syncthreads();
  const int r = first + threadIdx.x;
  if (r < last) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[r]);
    StoreReleaseSys(&peer->finished[blockIdx.x][args.rank], call);
    WaitAcquireSys(&mine->finished[blockIdx.x][r], call);
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.most * args.quads + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  Gather<<<blocks, kThreads, 0, stream>>>(args);
  Reduce<<<blocks, kThreads, 0, stream>>>(args);
}
