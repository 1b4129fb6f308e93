#include <allranks/flags.h>

// The packed bytes as they are, with one flag per block and peer: little more than half the traffic
// of words that carry their call, but a release and an acquire. Bytes lie in two sets by turns. A
// table in shared memory has the bf16 numbers of all codes in f32; products are exact.
using namespace allranks;
constexpr int kMaxBlocks = 16, kThreads = 128, kControl = 4096;

struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by peer: the last call whose bytes are here
};

__device__ uint4 Unpack(const float* table, std::uint32_t codes, std::uint32_t e) {
  const float scale = __uint_as_float(e == 0 ? 0x400000 : e << 23);
  std::uint32_t pair[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float low = table[codes >> 8 * k & 15] * scale;
    const float high = table[codes >> (8 * k + 4) & 15] * scale;
    pair[k] = __float_as_uint(low) >> 16 | __float_as_uint(high);
  }
  return {pair[0], pair[1], pair[2], pair[3]};
}

__global__ void __launch_bounds__(kThreads) Gather(Args args) {
  __shared__ float table[16];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x, t = threadIdx.x;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t % args.world]);
  const std::uint32_t call = mine->calls[b] + 1;
  const std::int64_t vectors = args.n / 8, set = call % 2 * args.world * args.n;
  const std::int64_t first = b * kThreads + t, stride = gridDim.x * kThreads;
  // Rank r's bytes at rank `to`: the codes, then the exponents.
  const auto at = [&](int to, int r) {
    return args.scratch_peers[to] + kControl + set + r * args.n;
  };
  if (t < 16) {
    const int m = t % 8;
    const float magnitude = m < 4 ? 0.5f * m : m < 6 ? m - 2.0f : 2.0f * m - 8;
    table[t] = t < 8 ? magnitude : -magnitude;
  }
  for (std::int64_t i = first; i < vectors; i += stride) {
    const std::uint32_t codes = reinterpret_cast<const std::uint32_t*>(args.codes)[i];
    const std::uint8_t e = args.exponents[i / 4];
    for (int step = 0; step < args.world; ++step) {
      auto* row = at((args.rank + step) % args.world, args.rank);
      reinterpret_cast<std::uint32_t*>(row)[i] = codes;
      if (i % 4 == 0) row[args.n / 2 + i / 4] = e;
    }
  }
  __syncthreads();  //@before
  if (t < args.world) {
    StoreReleaseSys(&peer->arrived[b][args.rank], call);  //@tell
    WaitAcquireSys(&mine->arrived[b][t], call);           //@wait
  }
  __syncthreads();  //@after
  for (std::int64_t i = first; i < vectors; i += stride) {
    for (int r = 0; r < args.world; ++r) {
      const auto* row = at(args.rank, r);
      const std::uint32_t codes = reinterpret_cast<const std::uint32_t*>(row)[i];
      const uint4 v = Unpack(table, codes, static_cast<std::uint8_t>(row[args.n / 2 + i / 4]));
      reinterpret_cast<uint4*>(args.out)[r * vectors + i] = v;
    }
  }
  if (t == 0) mine->calls[b] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 8 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Gather<<<blocks, kThreads, 0, stream>>>(args);
}
