// Step by step, with meetings of all ranks between the steps: everyone quantises its gradient into
// its own scratch; everyone sums and quantises its own slice from what all have there; everyone
// reads all sums. A last meeting keeps the sums until all have read them.
#include <allranks/flags.h>

using namespace allranks;
constexpr int kBlocks = 32, kThreads = 256, kControl = 256;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

// Integers and scales of gradients (kind 0) or of sums (kind 1).
__device__ std::int8_t* Integers(const Args& args, int rank, int kind) {
  return reinterpret_cast<std::int8_t*>(args.scratch_peers[rank] + kControl) + kind * args.n;
}
__device__ float* Scales(const Args& args, int rank, int kind) {
  return reinterpret_cast<float*>(Integers(args, rank, 2)) + kind * ((args.n + 127) / 128);
}

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

// A warp has a cell, four numbers per lane.
__device__ void Quantise(const Args& args, int kind, std::int64_t cell, const float (&x)[4]) {
  const int lane = threadIdx.x % 32;
  float amax = fmaxf(fmaxf(fabsf(x[0]), fabsf(x[1])), fmaxf(fabsf(x[2]), fabsf(x[3])));
  for (int k = 16; k > 0; k /= 2) amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, k));
  const std::uint32_t exponent = ((__float_as_uint(amax) + 0x1ffff) >> 23) - 6;
  const float scale = amax == 0 ? 0 : __uint_as_float(exponent << 23);
  if (lane == 0) Scales(args, args.rank, kind)[cell] = scale;
  for (int k = 0; k < 4; ++k) {
    const std::int64_t at = 128 * cell + 32 * k + lane;
    if (at >= args.n) break;
    Integers(args, args.rank, kind)[at] = scale == 0 ? 0 : __float2int_rn(x[k] / scale);
  }
}

__device__ float In(const Args& args, std::int64_t at) {
  const auto bits = reinterpret_cast<const std::uint16_t*>(args.in)[at];
  return __uint_as_float(static_cast<std::uint32_t>(bits) << 16);
}

__global__ void QuantiseAll(Args args) {
  const std::int64_t cells = (args.n + 127) / 128;
  const int lane = threadIdx.x % 32, warp = (blockIdx.x * kThreads + threadIdx.x) / 32;
  for (std::int64_t cell = warp; cell < cells; cell += kBlocks * kThreads / 32) {
    float x[4];
    for (int k = 0; k < 4; ++k) {
      const std::int64_t at = 128 * cell + 32 * k + lane;
      x[k] = at < args.n ? In(args, at) : 0;
    }
    Quantise(args, 0, cell, x);
  }
}

__global__ void SumOwn(Args args) {
  const std::int64_t cells = (args.n + 127) / 128;
  const int lane = threadIdx.x % 32, warp = (blockIdx.x * kThreads + threadIdx.x) / 32;
  const int stride = args.world * kBlocks * kThreads / 32;
  for (std::int64_t cell = warp * args.world + args.rank; cell < cells; cell += stride) {
    float x[4] = {};
    for (int r = 0; r < args.world; ++r) {
      const float scale = Scales(args, r, 0)[cell];
      for (int k = 0; k < 4; ++k) {
        const std::int64_t at = 128 * cell + 32 * k + lane;
        if (at < args.n) x[k] += Integers(args, r, 0)[at] * scale;
      }
    }
    Quantise(args, 1, cell, x);
  }
}

__global__ void Gather(Args args) {
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < args.n; i += kBlocks * kThreads) {
    const int owner = i / 128 % args.world;
    const float sum = Integers(args, owner, 1)[i] * Scales(args, owner, 1)[i / 128];
    reinterpret_cast<std::uint16_t*>(args.out)[i] = __float_as_uint(sum) >> 16;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  QuantiseAll<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  SumOwn<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Gather<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
