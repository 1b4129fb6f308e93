// Step by step: a kernel quantises into this rank's own rows, all meet, so that every output is
// open, a kernel copies the rows to the peers, and all meet again.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 32, kThreads = 256;

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncwarp();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

// A warp takes a block of 128 numbers, four per lane.
__global__ void Quantise(Args args) {
  const std::int64_t scales = (args.n + 127) / 128;
  const uint2* in = reinterpret_cast<const uint2*>(args.in);
  std::uint32_t* bytes = reinterpret_cast<std::uint32_t*>(args.values + args.rank * args.n);
  const int lane = threadIdx.x % 32, warp = (blockIdx.x * kThreads + threadIdx.x) / 32;
  for (std::int64_t b = warp; b < scales; b += kBlocks * kThreads / 32) {
    const std::int64_t at = 32 * b + lane;  // in groups of four
    const uint2 v = 4 * at < args.n ? in[at] : uint2{};
    const float x[4] = {__uint_as_float(v.x << 16), __uint_as_float(v.x & 0xffff0000u),
                        __uint_as_float(v.y << 16), __uint_as_float(v.y & 0xffff0000u)};
    float amax = fmaxf(fmaxf(fabsf(x[0]), fabsf(x[1])), fmaxf(fabsf(x[2]), fabsf(x[3])));
    for (int k = 16; k > 0; k /= 2) amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, k));
    const float inverse = amax == 0 ? 0 : 448.0f / amax;
    if (lane == 0) args.scales[args.rank * scales + b] = amax / 448.0f;
    if (4 * at >= args.n) continue;
    bytes[at] =
        TwoToE4m3(x[0] * inverse, x[1] * inverse) | TwoToE4m3(x[2] * inverse, x[3] * inverse) << 16;
  }
}

__global__ void Spread(Args args) {
  const std::int64_t words = args.n / 4, scales = (args.n + 127) / 128;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (int r = 0; r < args.world; ++r) {
    if (r == args.rank) continue;
    const std::uint32_t* from = reinterpret_cast<const std::uint32_t*>(args.values);
    std::uint32_t* to = reinterpret_cast<std::uint32_t*>(args.values_peers[r]);
    for (std::int64_t i = first; i < words; i += kBlocks * kThreads) {
      to[args.rank * words + i] = from[args.rank * words + i];
    }
    for (std::int64_t i = first; i < scales; i += kBlocks * kThreads) {
      args.scales_peers[r][args.rank * scales + i] = args.scales[args.rank * scales + i];
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Quantise<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Spread<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
