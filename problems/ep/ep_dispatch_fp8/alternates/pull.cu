// Every rank makes fp8 of its own rows once, in its own scratch, and tells all; then ranks fetch
// what they need from there. Block b has the tokens b, b + blocks, ... of all ranks. Masks of
// tokens lie beside the rows.
//
// Two sets take turns. A rank that makes the rows of call k + 2 has heard of all in call k + 1, so
// they have ended call k, in which they read the same set.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 128, kMasks = 4;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t made[kMaxBlocks][kMaxRanks];              // by source: the last call that is ready
  std::uint32_t going[2][kMaxBlocks][kMaxRanks][kMasks];  // by destination
};

__global__ void __launch_bounds__(kThreads) Dispatch(Args args) {
  __shared__ std::uint32_t going[kMaxRanks * kMasks];
  const int block = blockIdx.x, rank = args.rank, world = args.world;
  const int tokens = static_cast<int>(args.tokens), topk = static_cast<int>(args.topk);
  const int groups = static_cast<int>(args.groups), lane = threadIdx.x % 16;
  const auto control = [&](int at) { return reinterpret_cast<Control*>(args.scratch_peers[at]); };
  const std::uint32_t call = control(rank)->calls[block] + 1, set = call % 2;
  const auto row = [&](int at, int token) {  // bytes, then scales
    return reinterpret_cast<std::uint32_t*>(control(at) + 1) + (set * tokens + token) * groups * 33;
  };
  if (threadIdx.x < kMaxRanks * kMasks) going[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < tokens * topk; i += kThreads) {
    const int r = args.ids[i] / static_cast<int>(args.per), token = i / topk;
    atomicOr(&going[r * kMasks + token / 32], 1u << token % 32);
  }
  for (int token = block; token < tokens; token += gridDim.x) {
    std::uint32_t* to = row(rank, token);
    for (int first = 0; first < groups; first += kThreads / 16) {
      const int group = first + threadIdx.x / 16;
      const auto* from = reinterpret_cast<const Pack<__nv_bfloat16>*>(args.x);
      Pack<__nv_bfloat16> v = {};
      if (group < groups) v = from[(token * groups + group) * 16 + lane];
      float largest = 0;
      for (int i = 0; i < 8; ++i) largest = fmaxf(largest, fabsf(v[i]));
      for (int d = 8; d > 0; d /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, d));
      const float factor = largest > 0 ? 448 / largest : 0;
      if (group >= groups) continue;
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t low = TwoToE4m3(v[4 * i] * factor, v[4 * i + 1] * factor);
        const std::uint32_t high = TwoToE4m3(v[4 * i + 2] * factor, v[4 * i + 3] * factor);
        to[group * 32 + 2 * lane + i] = low | high << 16;
      }
      if (lane == 0) to[groups * 32 + group] = __float_as_uint(largest / 448);
    }
  }
  __syncthreads();
  if (threadIdx.x < world * kMasks) {
    control(rank)->going[set][block][threadIdx.x / kMasks][threadIdx.x % kMasks] =
        going[threadIdx.x];
  }
  __syncthreads();
  if (threadIdx.x < world) {
    StoreReleaseSys(&control(threadIdx.x)->made[block][rank], call);
    WaitAcquireSys(&control(rank)->made[block][threadIdx.x], call);
  }
  __syncthreads();
  for (int s = 0; s < world; ++s) {
    const uint4 four = *reinterpret_cast<const uint4*>(control(s)->going[set][block][rank]);
    const std::uint32_t masks[kMasks] = {four.x, four.y, four.z, four.w};
    int place = 0;
    for (int token = 0; token < tokens; ++token) {
      if ((masks[token / 32] >> token % 32 & 1) == 0) continue;
      if (token % gridDim.x == block) {
        const std::uint32_t* from = row(s, token);
        const std::int64_t to = s * tokens + place;
        for (int i = threadIdx.x; i < groups * 32; i += kThreads) {
          reinterpret_cast<std::uint32_t*>(args.recv_q)[to * groups * 32 + i] = from[i];
        }
        for (int g = threadIdx.x; g < groups; g += kThreads) {
          args.recv_scale[to * groups + g] = __uint_as_float(from[groups * 32 + g]);
        }
        if (threadIdx.x == 0) args.recv_token[to] = token;
      }
      ++place;
    }
    if (block == 0 && threadIdx.x == 0) args.recv_count[s] = place;
  }
  if (threadIdx.x == 0) control(rank)->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = static_cast<int>(args.tokens < kMaxBlocks ? args.tokens : kMaxBlocks);
  Dispatch<<<blocks, kThreads, 0, stream>>>(args);
}
