// Step by step: one block finds this rank's largest parameter and a kernel quantises into this
// rank's scratch; all meet; a kernel reads and dequantises the bytes of all ranks; all meet again
// before the bytes may be overwritten.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;
constexpr int kBlocks = 32, kThreads = 256, kControl = 256;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  float amax, history;
};

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}
__device__ std::uint16_t* Pairs(const Args& args, int rank) {
  return reinterpret_cast<std::uint16_t*>(args.scratch_peers[rank] + kControl);
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
  float amax = 0, history = 0;
  for (std::int64_t i = threadIdx.x; i < args.n; i += 1024) amax = fmaxf(amax, fabsf(args.in[i]));
  part[threadIdx.x] = amax;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (const float other : part) amax = fmaxf(amax, other);
  for (int j = 0; j < 16; ++j) history = fmaxf(history, fabsf(args.history[j]));
  ControlOf(args, args.rank)->amax = amax;
  ControlOf(args, args.rank)->history = history == 0 ? 448.0f : history;
}

__global__ void Quantise(Args args) {
  const float inverse = 448.0f / ControlOf(args, args.rank)->history;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < args.n / 2; i += kBlocks * kThreads) {
    Pairs(args, args.rank)[i] = TwoToE4m3(args.in[2 * i] * inverse, args.in[2 * i + 1] * inverse);
  }
}

__global__ void Dequantise(Args args) {
  using Bfloat = Number<__nv_bfloat16>;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (int r = 0; r < args.world; ++r) {
    const float scale = ControlOf(args, r)->history / 448.0f;
    std::uint32_t* out = reinterpret_cast<std::uint32_t*>(args.out) + r * args.n / 2;
    for (std::int64_t i = first; i < args.n / 2; i += kBlocks * kThreads) {
      const float2 q = TwoFromE4m3(Pairs(args, r)[i]);
      const std::uint32_t high = Bfloat::FromFloat(q.y * scale);
      out[i] = Bfloat::FromFloat(q.x * scale) | high << 16;
    }
    if (first == 0) args.amax[r] = ControlOf(args, r)->amax;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Max<<<1, 1024, 0, stream>>>(args);
  Quantise<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Dequantise<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
