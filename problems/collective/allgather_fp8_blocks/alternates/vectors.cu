#include <allranks/flags.h>
#include <allranks/numbers.h>

// No shared memory: each thread stores the 16 bytes that it has quantised to all ranks. One counter
// per block serves both meetings: every rank adds one when it has entered and one when its data
// have come. A rank cannot be a call ahead of another before it has met all.
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t counts[kMaxBlocks];
};

__device__ void Meet(const Args& args, std::uint32_t complete) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    AddReleaseSys(&peer->counts[blockIdx.x], 1u);
    WaitAcquireSys(&reinterpret_cast<Control*>(args.scratch)->counts[blockIdx.x], complete);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) GatherQuantised(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t calls = mine->calls[blockIdx.x];
  const std::int64_t vectors = args.n / 16, scales = (args.n + 127) / 128;
  Meet(args, (2 * calls + 1) * args.world);
  const std::int64_t begin = blockIdx.x * kThreads, stride = gridDim.x * kThreads;
  for (std::int64_t base = begin; base < vectors; base += stride) {
    const std::int64_t i = base + threadIdx.x;
    const bool valid = i < vectors;
    Pack<__nv_bfloat16> x[2] = {};
    if (valid) {
      x[0] = reinterpret_cast<const Pack<__nv_bfloat16>*>(args.in)[2 * i];
      x[1] = reinterpret_cast<const Pack<__nv_bfloat16>*>(args.in)[2 * i + 1];
    }
    float amax = 0;
    for (int k = 0; k < 16; ++k) amax = fmaxf(amax, fabsf(x[k / 8][k % 8]));
    for (int k = 1; k < 8; k *= 2) amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, k));
    const float inverse = amax == 0 ? 0 : 448.0f / amax;
    std::uint32_t word[4];
    for (int k = 0; k < 16; k += 4) {
      const Pack<__nv_bfloat16>& v = x[k / 8];
      const int at = k % 8;
      word[k / 4] = TwoToE4m3(v[at] * inverse, v[at + 1] * inverse) |
                    TwoToE4m3(v[at + 2] * inverse, v[at + 3] * inverse) << 16;
    }
    for (int step = 0; step < args.world && valid; ++step) {
      const int r = (args.rank + step) % args.world;
      reinterpret_cast<uint4*>(args.values_peers[r])[args.rank * vectors + i] = {word[0], word[1],
                                                                                 word[2], word[3]};
      if (i % 8 == 0) args.scales_peers[r][args.rank * scales + i / 8] = amax / 448.0f;
    }
  }
  Meet(args, (2 * calls + 2) * args.world);
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = calls + 1;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 16 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  GatherQuantised<<<blocks, kThreads, 0, stream>>>(args);
}
