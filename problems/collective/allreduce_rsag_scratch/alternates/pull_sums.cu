// Only flags are written to peers: a rank adds up its slice in its own output, and all others pull
// the sums from there. A block has a semaphore for each peer and step.
#include <allranks/flags.h>
#include <allranks/numbers.h>
using namespace allranks;
using Bf16 = Number<__nv_bfloat16>;

constexpr int kMaxBlocks = 32, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t reached[3][kMaxBlocks][kMaxRanks];  // by step and peer: the last call
};

__device__ void Meet(const Args& args, int step, std::uint32_t call) {
  __syncthreads();  //@before
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    StoreReleaseSys(&peer->reached[step][blockIdx.x][args.rank], call);   //@tell
    WaitAcquireSys(&mine->reached[step][blockIdx.x][threadIdx.x], call);  //@wait
  }
  __syncthreads();  //@after
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args, int slice) {
  std::uint32_t* calls = reinterpret_cast<Control*>(args.scratch)->calls + blockIdx.x;
  const std::uint32_t call = *calls + 1;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const int n = args.n, vectors = (n + 7) / 8;
  Meet(args, 0, call);
  for (int i = first; i < slice && args.rank * slice + i < vectors; i += stride) {
    const int at = args.rank * slice + i, count = min(8, n - 8 * at);
    if (count == 8) {
      float low[4] = {}, high[4] = {};
      uint4 v[kMaxRanks];
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (r < args.world) v[r] = reinterpret_cast<const uint4*>(args.in_peers[r])[at];
      }
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (r >= args.world) break;
        const std::uint32_t x[4] = {v[r].x, v[r].y, v[r].z, v[r].w};
        for (int k = 0; k < 4; ++k) low[k] += __uint_as_float(x[k] << 16);
        for (int k = 0; k < 4; ++k) high[k] += __uint_as_float(x[k] & 0xffff0000u);
      }
      std::uint32_t x[4];
      for (int k = 0; k < 4; ++k) {
        x[k] = Bf16::FromFloat(low[k]) | std::uint32_t{Bf16::FromFloat(high[k])} << 16;
      }
      reinterpret_cast<uint4*>(args.out)[at] = {x[0], x[1], x[2], x[3]};
      continue;
    }
    for (int k = 8 * at; k < n; ++k) {
      float x = 0;
      for (int r = 0; r < args.world; ++r) {
        x += Bf16::ToFloat(reinterpret_cast<const std::uint16_t*>(args.in_peers[r])[k]);
      }
      reinterpret_cast<std::uint16_t*>(args.out)[k] = Bf16::FromFloat(x);
    }
  }
  Meet(args, 1, call);
  for (int i = first; i < slice; i += stride) {
    for (int step = 1; step < args.world; ++step) {
      const int r = (args.rank + step) % args.world, at = r * slice + i;
      const std::uint16_t* from = reinterpret_cast<const std::uint16_t*>(args.out_peers[r]);
      std::uint16_t* out = reinterpret_cast<std::uint16_t*>(args.out);
      if (8 * at + 8 <= n) {
        reinterpret_cast<uint4*>(out)[at] = reinterpret_cast<const uint4*>(from)[at];
      } else {
        for (int k = 8 * at; k < n; ++k) out[k] = from[k];
      }
    }
  }
  Meet(args, 2, call);
  if (threadIdx.x == 0) *calls = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int slice = static_cast<int>(((args.n + 7) / 8 + args.world - 1) / args.world);
  const int needed = (slice + kThreads - 1) / kThreads;
  AllReduce<<<needed < kMaxBlocks ? needed : kMaxBlocks, kThreads, 0, stream>>>(args, slice);
}
