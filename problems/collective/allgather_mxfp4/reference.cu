#include <allranks/flags.h>

// Eight codes, their exponent and the number of the call make one word of 8 bytes, which is stored
// and loaded at once: who sees the call's number has the rest too, without flags and fences. A
// thread sends its word to all peers, unpacks it, and then unpacks the peers' words at the same
// place.
//
// Nobody can be two calls ahead of another, because it needs that one's words. So words lie in two
// sets by turns, and the number before the awaited one in a slot is always that of two calls ago.
using namespace allranks;
constexpr int kMaxBlocks = 16, kThreads = 128, kControl = 1024;

__device__ std::uint32_t Times(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}

// A code's magnitude, at the place of a bf16 number's lowest exponent bits and highest bit of the
// mantissa, is the value times 2^-126: both formats have subnormals. No product is rounded.
__device__ uint4 Unpack(std::uint32_t codes, std::uint32_t e) {
  const std::uint32_t scale = (e == 0 ? 0x40 : e << 7) * 0x10001u;
  std::uint32_t pair[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::uint32_t w = codes >> 8 * k;
    pair[k] = (w & 7) << 6 | (w & 8) << 12 | (w & 0x70) << 18 | (w & 0x80) << 24;
    pair[k] = Times(Times(pair[k], 0x7e807e80u), scale);
  }
  return {pair[0], pair[1], pair[2], pair[3]};
}

__global__ void __launch_bounds__(kThreads) Gather(Args args) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;  //@epoch
  const std::uint32_t tag = call & 0xffffff;
  const int vectors = args.n / 8, set = call % 2 * args.world * vectors;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const auto slots = [&](int r) {
    return reinterpret_cast<std::uint64_t*>(args.scratch_peers[r] + kControl) + set;
  };
  uint4* out = reinterpret_cast<uint4*>(args.out);

  for (int i = first; i < vectors; i += stride) {
    const std::uint32_t codes = reinterpret_cast<const std::uint32_t*>(args.codes)[i];
    const std::uint32_t e = args.exponents[i / 4];
    const std::uint64_t word = std::uint64_t{tag << 8 | e} << 32 | codes;
    for (int step = 1; step < args.world; ++step) {
      const int next = args.rank + step, r = next < args.world ? next : next - args.world;
      StoreRelaxedSys(slots(r) + args.rank * vectors + i, word);  //@send
    }
    out[args.rank * vectors + i] = Unpack(codes, e);  //@own
  }
  const std::uint64_t* mine = slots(args.rank);
  for (int i = first; i < vectors; i += stride) {
    std::uint64_t word[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
      if (r >= args.world || r == args.rank) continue;
      word[r] = LoadRelaxedSys(mine + r * vectors + i);  //@receive
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world || r == args.rank) continue;
      while (word[r] >> 40 != tag) {                       //@poll
        word[r] = LoadRelaxedSys(mine + r * vectors + i);  //@receive
      }
      out[r * vectors + i] = Unpack(static_cast<std::uint32_t>(word[r]), word[r] >> 32 & 0xff);
    }
  }
  __syncthreads();                                 //@all_have_read
  if (threadIdx.x == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 8 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Gather<<<blocks, kThreads, 0, stream>>>(args);
}
