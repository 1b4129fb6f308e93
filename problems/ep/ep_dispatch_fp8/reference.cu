// Block b of every rank has the tokens b, b + blocks, ... Sixteen lanes make fp8 of a group once
// and store it into slots, by source and token, at every rank that the token goes to: 132 bytes of
// a group travel instead of 256. Each block also sends the mask of all tokens that go to a rank, so
// that the receiving block knows which of its tokens come and how many are before them.
//
// Slots and masks exist twice, for odd and even calls. A block that writes in call k + 2 has seen
// the flags of all ranks of call k + 1; they had ended call k then, and had read what it left.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 128, kWarps = kThreads / 32, kBatch = 2, kMasks = 4;

struct Control {
  std::uint32_t calls[kMaxBlocks];                        // that this block has completed
  std::uint32_t sent[kMaxBlocks][kMaxRanks];              // by source: the last call that is here
  std::uint32_t going[2][kMaxBlocks][kMaxRanks][kMasks];  // by source: bits of its tokens
};

__device__ float2 Two(std::uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
}

// A lane's eight numbers of a group in fp8; the group's scale.
__device__ uint2 Quantise(const uint4& eight, float& scale) {
  const float2 v[4] = {Two(eight.x), Two(eight.y), Two(eight.z), Two(eight.w)};
  float largest = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) largest = fmaxf(largest, fmaxf(fabsf(v[i].x), fabsf(v[i].y)));
  for (int d = 8; d > 0; d /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, d));
  const float factor = largest > 0 ? 448 / largest : 0;
  scale = largest / 448;
  std::uint32_t q[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) q[i] = TwoToE4m3(v[i].x * factor, v[i].y * factor);
  return {q[0] | q[1] << 16, q[2] | q[3] << 16};
}

__global__ void __launch_bounds__(kThreads) Dispatch(Args args) {
  __shared__ std::uint32_t going[kMaxRanks][kMasks];  // bits of own tokens
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int rank = args.rank, world = args.world, tokens = static_cast<int>(args.tokens);
  const int topk = static_cast<int>(args.topk), per = static_cast<int>(args.per);
  const int groups = static_cast<int>(args.groups), warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32, set = call % 2 * world * tokens;
  // Slots at a rank: 128 bytes per group; their scales follow.
  const auto bytes = [&](int at, int slot) {
    return args.scratch_peers[at] + sizeof(Control) + std::int64_t{slot} * groups * 128;
  };
  const auto scales = [&](int at, int slot) {
    return reinterpret_cast<float*>(bytes(at, 2 * world * tokens)) + slot * groups;
  };

  if (threadIdx.x < kMaxRanks * kMasks) going[threadIdx.x / kMasks][threadIdx.x % kMasks] = 0;
  __syncthreads();  //@zeroed
  for (int i = threadIdx.x; i < tokens * topk; i += kThreads) {
    const int token = i / topk;
    atomicOr(&going[args.ids[i] / per][token / 32], 1u << token % 32);
  }
  __syncthreads();  //@known
  for (int token = blockIdx.x; token < tokens; token += gridDim.x) {
    const uint4* row = reinterpret_cast<const uint4*>(args.x) + token * groups * 16;
    // A warp has two groups at a time, and stays together for the last one.
    for (int first = warp * 2; first < groups; first += kWarps * 2) {
      const int group = first + lane / 16, at = lane % 16;
      const uint4 eight = group < groups ? row[group * 16 + at] : uint4{};
      float scale;
      const uint2 q = Quantise(eight, scale);
      if (group >= groups) continue;
      for (int step = 0; step < world; ++step) {  // everyone begins with another
        const int r = rank + step < world ? rank + step : rank + step - world;
        if ((going[r][token / 32] >> token % 32 & 1) == 0) continue;
        const int slot = set + rank * tokens + token;
        reinterpret_cast<uint2*>(bytes(r, slot))[group * 16 + at] = q;
        if (at == 0) scales(r, slot)[group] = scale;
      }
    }
  }
  if (threadIdx.x < world * kMasks) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x / kMasks]);
    const int word = threadIdx.x % kMasks;
    peer->going[call % 2][blockIdx.x][rank][word] = going[threadIdx.x / kMasks][word];
  }
  __syncthreads();  //@sent
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->sent[blockIdx.x][rank], call);        //@tell
    WaitAcquireSys(&mine->sent[blockIdx.x][threadIdx.x], call);  //@wait
  }
  __syncthreads();  //@arrived

  for (int s = warp; s < world; s += kWarps) {
    const uint4 masks = *reinterpret_cast<const uint4*>(mine->going[call % 2][blockIdx.x][s]);
    const std::uint32_t came[kMasks] = {masks.x, masks.y, masks.z, masks.w};
    for (int token = blockIdx.x; token < tokens; token += gridDim.x) {
      int place = 0;
      bool comes = false;
#pragma unroll
      for (int w = 0; w < kMasks; ++w) {
        const std::uint32_t before = (1u << token % 32) - 1;
        if (w < token / 32) place += __popc(came[w]);
        if (w == token / 32) place += __popc(came[w] & before);
        if (w == token / 32) comes = came[w] >> token % 32 & 1;
      }
      if (!comes) continue;
      const int slot = set + s * tokens + token, end = groups * 8;
      const uint4* from = reinterpret_cast<const uint4*>(bytes(rank, slot));
      uint4* to = reinterpret_cast<uint4*>(args.recv_q) + (s * tokens + place) * end;
      for (int base = lane; base < end; base += 32 * kBatch) {
        uint4 v[kBatch];
#pragma unroll
        for (int n = 0; n < kBatch; ++n) {  // all on their way before the first is needed
          if (base + n * 32 < end) v[n] = from[base + n * 32];
        }
#pragma unroll
        for (int n = 0; n < kBatch; ++n) {
          if (base + n * 32 < end) to[base + n * 32] = v[n];
        }
      }
      for (int g = lane; g < groups; g += 32) {
        args.recv_scale[(s * tokens + place) * groups + g] = scales(rank, slot)[g];
      }
      if (lane == 0) args.recv_token[s * tokens + place] = token;
    }
    if (blockIdx.x == 0 && lane == 0) {
      args.recv_count[s] = __popc(came[0]) + __popc(came[1]) + __popc(came[2]) + __popc(came[3]);
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = static_cast<int>(args.tokens < kMaxBlocks ? args.tokens : kMaxBlocks);
  Dispatch<<<blocks, kThreads, 0, stream>>>(args);
}
