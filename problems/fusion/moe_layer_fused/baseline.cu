// Kernel by kernel, with meetings of all ranks between them: a warp per expert and token fetches the
// row and sends an answer; later every rank adds up what its tokens have got.
// The meeting at the next call's beginning keeps answers until they have been added.
#include <allranks/flags.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}
__device__ float* Answer(const Args& args, int at, std::int64_t token, std::int64_t expert) {
  const std::int64_t n = token * args.world * args.per + expert;
  return reinterpret_cast<float*>(args.scratch_peers[at] + 65536) + n * args.cols * 32;
}
// By a warp.
__device__ bool Uses(const Args& args, int rank, std::int64_t token, std::int64_t expert) {
  const std::int64_t experts = args.world * args.per, lane = threadIdx.x % 32;
  const int* scores = args.scores_peers[rank] + token * experts;
  const bool above = lane < experts && scores[lane] > scores[expert];
  return __popc(__ballot_sync(~0u, above)) < args.topk;
}
__device__ float Half(std::uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

__global__ void Meet(Args args) {
  Control* mine = ControlOf(args, args.rank);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&ControlOf(args, threadIdx.x)->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Multiply(Args args) {
  const std::int64_t k = args.depth * 64, warps = gridDim.x * 4;
  for (std::int64_t n = blockIdx.x * 4 + threadIdx.x / 32; n < args.per * args.world * args.tokens;
       n += warps) {
    const std::int64_t e = n % args.per, item = n / args.per, token = item % args.tokens;
    const int source = static_cast<int>(item / args.tokens);
    if (!Uses(args, source, token, args.rank * args.per + e)) continue;
    const auto* x = reinterpret_cast<const std::uint16_t*>(args.x_peers[source]) + token * k;
    for (std::int64_t j = threadIdx.x % 32; j < args.cols * 32; j += 32) {
      const auto* w = reinterpret_cast<const std::uint16_t*>(args.w) + (e * args.cols * 32 + j) * k;
      float y = 0;
#pragma unroll 8
      for (std::int64_t i = 0; i < k; ++i) y += Half(x[i]) * Half(w[i]);
      Answer(args, source, token, args.rank * args.per + e)[j] = fmaxf(y, 0);
    }
  }
}

__global__ void Combine(Args args) {
  const std::int64_t experts = args.world * args.per;
  for (std::int64_t token = blockIdx.x; token < args.tokens; token += gridDim.x) {
    for (std::int64_t j = threadIdx.x; j < args.cols * 32; j += 32) {
      float sum = 0;
      for (std::int64_t e = 0; e < experts; ++e) {
        if (!Uses(args, args.rank, token, e)) continue;
        const float gate = static_cast<float>(1 + args.scores[token * experts + e]);
        sum += gate * Answer(args, args.rank, token, e)[j];
      }
      args.out[token * args.cols * 32 + j] = sum;
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Multiply<<<32, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Combine<<<32, 32, 0, stream>>>(args);
}
