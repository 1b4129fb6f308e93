// Step by step, with meetings of all ranks between the steps: one block finds this rank's largest
// number; a kernel reads those of all ranks and quantises into this rank's scratch; a kernel reads
// this rank's row from all. A last meeting keeps the bytes until all have read them.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;
constexpr int kBlocks = 32, kThreads = 256, kControl = 256;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  float amax;
};

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}

__global__ void Meet(Args args) {
  Control* mine = ControlOf(args, args.rank);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncwarp();
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&ControlOf(args, threadIdx.x)->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Max(Args args) {
  __shared__ float part[1024];
  const uint4* in = reinterpret_cast<const uint4*>(args.in);
  float amax = 0;
  for (std::int64_t i = threadIdx.x; i < args.world * args.m / 8; i += 1024) {
    const uint4 v = in[i];
    for (const std::uint32_t word : {v.x, v.y, v.z, v.w}) {
      amax = fmaxf(amax, fabsf(__uint_as_float(word << 16)));
      amax = fmaxf(amax, fabsf(__uint_as_float(word & 0xffff0000u)));
    }
  }
  part[threadIdx.x] = amax;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (const float other : part) amax = fmaxf(amax, other);
  ControlOf(args, args.rank)->amax = amax;
}

__device__ float Scale(const Args& args) {
  float amax = 0;
  for (int r = 0; r < args.world; ++r) amax = fmaxf(amax, ControlOf(args, r)->amax);
  if (amax == 0) return 1;
  return __uint_as_float((((__float_as_uint(amax) + 0x1fffff) >> 23) - 8) << 23);
}

__global__ void Quantise(Args args) {
  const float scale = Scale(args);
  const std::uint32_t* in = reinterpret_cast<const std::uint32_t*>(args.in);
  std::uint16_t* pairs = reinterpret_cast<std::uint16_t*>(args.scratch + kControl);
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < args.world * args.m / 2; i += kBlocks * kThreads) {
    const std::uint32_t word = in[i];
    pairs[i] =
        TwoToE4m3(__uint_as_float(word << 16) / scale, __uint_as_float(word & 0xffff0000u) / scale);
  }
}

__global__ void Sum(Args args) {
  const float scale = Scale(args);
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < args.m / 2; i += kBlocks * kThreads) {
    float2 sum = {};
    for (int r = 0; r < args.world; ++r) {
      const auto* pairs = reinterpret_cast<const std::uint16_t*>(args.scratch_peers[r] + kControl);
      const float2 x = TwoFromE4m3(pairs[args.rank * args.m / 2 + i]);
      sum = {sum.x + x.x, sum.y + x.y};
    }
    reinterpret_cast<float2*>(args.out)[i] = {sum.x * scale, sum.y * scale};
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Max<<<1, 1024, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Quantise<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
