// All-reduce by two shots: every rank's `out` is the sum of all ranks' `in`.
// Fill the region below; statement.md says what holds and what is asked for.
#include "problem.h"

// >>> edit
// By pushing. The vectors of four elements are cut into one slice per rank. Shot one: every rank
// writes its part of slice p into a slot at rank p. Shot two: rank p adds up the slots of its slice,
// in the order of ranks, and writes the sums into everybody's `out`. Block b of every rank has the
// same vectors of each slice, so it needs to hear of the blocks b only.
//
// Who may write when. A peer's `out` is open once that peer has told of its first shot: it is inside
// the call, and cannot leave before it has heard of our second. Slots exist once: a rank leaves call
// k after it has heard of the owner's second shot, when the owner has read them.
//
// Flags hold the last call in which their sender got so far. They only grow.

constexpr int kMaxBlocks = 64;
constexpr int kMaxThreads = 512;

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t calls[kMaxBlocks];                // that this block has completed
  std::uint32_t scattered[kMaxBlocks][kMaxRanks];  // by peer: the last call whose shot one is here
  std::uint32_t gathered[kMaxBlocks][kMaxRanks];   // the same of shot two
};

__device__ void StoreReleaseSys(std::uint32_t* flag, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");  //@publish
}

__device__ std::uint32_t LoadAcquireSys(const std::uint32_t* flag) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");  //@observe
  return value;
}

// Elements 4 * i to 4 * i + 3, of which the last vector may have fewer.
__device__ float4 Load(const float* in, std::int64_t n, std::int64_t i) {
  if (4 * i + 4 <= n) return reinterpret_cast<const float4*>(in)[i];  //@tail_load
  float4 v = {0, 0, 0, 0};
  v.x = in[4 * i];
  if (4 * i + 1 < n) v.y = in[4 * i + 1];
  if (4 * i + 2 < n) v.z = in[4 * i + 2];
  return v;
}

__device__ void Store(float* out, std::int64_t n, std::int64_t i, float4 v) {
  if (4 * i + 4 <= n) {  //@tail_store
    reinterpret_cast<float4*>(out)[i] = v;
    return;
  }
  out[4 * i] = v.x;
  if (4 * i + 1 < n) out[4 * i + 1] = v.y;
  if (4 * i + 2 < n) out[4 * i + 2] = v.z;  //@last
}

__global__ void __launch_bounds__(kMaxThreads) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const std::int64_t vectors = (args.n + 3) / 4;
  const std::int64_t slice = (vectors + args.world - 1) / args.world;  // the last ones may be shorter
  const std::int64_t first = blockIdx.x * blockDim.x + threadIdx.x;
  const std::int64_t stride = gridDim.x * blockDim.x;

  for (std::int64_t i = first; i < slice; i += stride) {
    for (int step = 1; step < args.world; ++step) {  // everyone begins with another peer
      const int owner = (args.rank + step) % args.world;
      float4* slots = reinterpret_cast<float4*>(args.scratch_peers[owner] + sizeof(Control));
      const std::int64_t at = owner * slice + i;
      if (at < vectors) slots[args.rank * slice + i] = Load(args.in, args.n, at);  //@scatter
    }
  }
  __syncthreads();  //@before_first
  // One thread per peer: tells it, and waits for it in this rank's own memory.
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % args.world]);
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&peer->scattered[blockIdx.x][args.rank], call);  //@tell_first
    const std::uint32_t* flag = &mine->scattered[blockIdx.x][threadIdx.x];
    while (std::int32_t(LoadAcquireSys(flag) - call) < 0) {  //@wait_first
    }
  }
  __syncthreads();  //@after_first

  const float4* slots = reinterpret_cast<const float4*>(args.scratch + sizeof(Control));
  for (std::int64_t i = first; i < slice; i += stride) {
    const std::int64_t at = args.rank * slice + i;
    if (at >= vectors) break;
    float4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
      if (r >= args.world) continue;
      v[r] = r == args.rank ? Load(args.in, args.n, at) : slots[r * slice + i];  //@own
    }
    float4 sum = v[0];
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r < args.world) sum = {sum.x + v[r].x, sum.y + v[r].y, sum.z + v[r].z, sum.w + v[r].w};  //@ranks
    }
    for (int step = 0; step < args.world; ++step) {  //@gather
      Store(args.out_peers[(args.rank + step) % args.world], args.n, at, sum);
    }
  }
  __syncthreads();  //@before_second
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&peer->gathered[blockIdx.x][args.rank], call);  //@tell_second
    const std::uint32_t* flag = &mine->gathered[blockIdx.x][threadIdx.x];
    while (std::int32_t(LoadAcquireSys(flag) - call) < 0) {  //@wait_second
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t vectors = (args.n + 3) / 4, slice = (vectors + args.world - 1) / args.world;
  const int threads = slice <= kMaxBlocks * 128 ? 128 : kMaxThreads;
  const std::int64_t blocks = (slice + threads - 1) / threads;
  AllReduce<<<blocks < kMaxBlocks ? blocks : kMaxBlocks, threads, 0, stream>>>(args);
}
// <<< edit
