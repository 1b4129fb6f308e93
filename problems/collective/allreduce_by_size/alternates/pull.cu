// By pulling, with flags at any size: a block copies its vectors of the input into its own scratch
// and tells the same block of all ranks. Up to 64 KB everybody adds up everything. Above, a block
// adds up its slice, stores the sums into all outputs, and tells so.
//
// Two buffers take turns where there is one meeting: peers read call k's while this rank is in call
// k + 1, and have left them when it has met them there. With two meetings one buffer is enough.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 512, kOneShot = 1 << 14;
struct alignas(16) Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t reached[kMaxBlocks][kMaxRanks];  // by peer: its last meeting
};

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    StoreReleaseSys(&peer->reached[blockIdx.x][args.rank], meeting);   //@tell
    WaitAcquireSys(&mine->reached[blockIdx.x][threadIdx.x], meeting);  //@wait
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args, int slice, bool one) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
  const int vectors = (args.n + 3) / 4, parts = one ? 1 : args.world, n = args.n;
  const int buffer = sizeof(Control) + (one ? call % 2 * vectors * 16 : 0);
  float* staged = reinterpret_cast<float*>(args.scratch + buffer);
  for (int i = first; i < slice; i += stride) {
    for (int part = 0; part < parts; ++part) {
      const int at = part * slice + i;
      for (int k = 4 * at; k < min(n, 4 * at + 4); ++k) staged[k] = args.in[k];
    }
  }
  Meet(args, one ? call : 2 * call - 1);
  for (int i = first; i < slice; i += stride) {
    const int at = one ? i : args.rank * slice + i;
    if (at >= vectors) continue;
    float4 v[kMaxRanks], sum = {0, 0, 0, 0};
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < args.world) v[r] = reinterpret_cast<float4*>(args.scratch_peers[r] + buffer)[at];
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world) break;
      sum = {sum.x + v[r].x, sum.y + v[r].y, sum.z + v[r].z, sum.w + v[r].w};
    }
    for (int step = 0; step < parts; ++step) {
      float* out = one ? args.out : args.out_peers[(args.rank + step) % args.world];
      if (4 * at + 4 <= n) reinterpret_cast<float4*>(out)[at] = sum;
      for (int k = 4 * at; n / 4 == at && k < n; ++k) out[k] = (&sum.x)[k % 4];
    }
  }
  if (!one) Meet(args, 2 * call);
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const bool one = args.n <= kOneShot;
  const int vectors = static_cast<int>((args.n + 3) / 4);
  const int slice = one ? vectors : (vectors + args.world - 1) / args.world;
  const int threads = slice > 128 * kMaxBlocks ? kThreads : 128;
  const int needed = (slice + threads - 1) / threads;
  AllReduce<<<needed < kMaxBlocks ? needed : kMaxBlocks, threads, 0, stream>>>(args, slice, one);
}
