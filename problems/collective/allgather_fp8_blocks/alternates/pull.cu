#include <allranks/flags.h>
#include <allranks/numbers.h>

// By reading: block b quantises its 128-number blocks into this rank's own rows and tells the
// blocks b of the peers, which copy them from there. A rank leaves when all have copied its rows.
using namespace allranks;

constexpr int kMaxBlocks = 64, kWarps = 8;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t ready[kMaxBlocks][kMaxRanks];
  std::uint32_t copied[kMaxBlocks][kMaxRanks];
};

__global__ void __launch_bounds__(32 * kWarps) GatherQuantised(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x, t = threadIdx.x, lane = t % 32, warp = t / 32;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t % args.world]);
  const std::uint32_t call = mine->calls[b] + 1;
  const std::int64_t words = args.n / 4, scales = (args.n + 127) / 128;
  const std::int64_t first = b * kWarps + warp, stride = gridDim.x * kWarps;
  std::uint32_t* own = reinterpret_cast<std::uint32_t*>(args.values) + args.rank * words;
  for (std::int64_t s = first; s < scales; s += stride) {
    const std::int64_t i = 32 * s + lane;
    const uint2 v = i < words ? reinterpret_cast<const uint2*>(args.in)[i] : uint2{};
    const float x[4] = {__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xffff0000u),
                        __uint_as_float(v.y << 16), __uint_as_float(v.y & 0xffff0000u)};
    float amax = fmaxf(fmaxf(fabsf(x[0]), fabsf(x[1])), fmaxf(fabsf(x[2]), fabsf(x[3])));
    for (int k = 16; k > 0; k /= 2) amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, k));
    const float inverse = amax == 0 ? 0 : 448.0f / amax;
    if (i < words) {
      own[i] = TwoToE4m3(x[0] * inverse, x[1] * inverse) | TwoToE4m3(x[2] * inverse, x[3] * inverse)
                                                               << 16;
    }
    if (lane == 0) args.scales[args.rank * scales + s] = amax / 448.0f;
  }
  __syncthreads();
  if (t < args.world) {
    StoreReleaseSys(&peer->ready[b][args.rank], call);
    WaitAcquireSys(&mine->ready[b][t], call);
  }
  __syncthreads();
  for (std::int64_t s = first; s < scales; s += stride) {
    const std::int64_t i = 32 * s + lane;
    std::uint32_t word[kMaxRanks];
    float scale[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world || r == args.rank) continue;
      if (i < words)
        word[r] = reinterpret_cast<std::uint32_t*>(args.values_peers[r])[r * words + i];
      if (lane == 0) scale[r] = args.scales_peers[r][r * scales + s];
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world || r == args.rank) continue;
      if (i < words) reinterpret_cast<std::uint32_t*>(args.values)[r * words + i] = word[r];
      if (lane == 0) args.scales[r * scales + s] = scale[r];
    }
  }
  __syncthreads();
  if (t < args.world) {
    StoreReleaseSys(&peer->copied[b][args.rank], call);
    WaitAcquireSys(&mine->copied[b][t], call);
  }
  if (t == 0) mine->calls[b] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + 128 * kWarps - 1) / (128 * kWarps);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  GatherQuantised<<<blocks, 32 * kWarps, 0, stream>>>(args);
}
