#include <allranks/flags.h>
#include <allranks/numbers.h>

// By reading: bytes, scale and the largest parameter of every block stay in the scratch of their
// rank, in two sets by turns. After one meeting of the blocks b everyone reads. The last block of a
// rank that has met its peers knows that all blocks of all ranks are there, and writes `amax`.
using namespace allranks;
constexpr int kMaxBlocks = 32, kThreads = 128, kControl = 8192;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t ready[kMaxBlocks][kMaxRanks];
  std::uint32_t met;  // blocks, over all calls
  float largest[2][kMaxBlocks];
};

__global__ void __launch_bounds__(kThreads) GatherParams(Args args) {
  __shared__ float part[kThreads];
  __shared__ bool last;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x, t = threadIdx.x, world = args.world;
  const std::uint32_t call = mine->calls[b] + 1;
  const int words = args.n / 4, stride = gridDim.x * kThreads, set = call % 2;
  const auto bytes = [&](int rank) {
    return reinterpret_cast<std::uint32_t*>(args.scratch_peers[rank] + kControl) + set * words;
  };
  // The scale of a rank, by set and block: in the second half of the control part.
  const auto scale_of = [&](int rank) {
    return reinterpret_cast<float*>(args.scratch_peers[rank] + kControl / 2) + set * kMaxBlocks + b;
  };
  float history = 0;
  for (int j = 0; j < 16; ++j) history = fmaxf(history, fabsf(args.history[j]));
  if (history == 0) history = 448.0f;
  const float inverse = 448.0f / history;
  float amax = 0;
  for (int i = b * kThreads + t; i < words; i += stride) {
    const float4 v = reinterpret_cast<const float4*>(args.in)[i];
    amax = fmaxf(amax, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
    bytes(args.rank)[i] =
        TwoToE4m3(v.x * inverse, v.y * inverse) | TwoToE4m3(v.z * inverse, v.w * inverse) << 16;
  }
  part[t] = amax;
  for (int k = kThreads / 2; k > 0; k /= 2) {
    __syncthreads();
    if (t < k) part[t] = fmaxf(part[t], part[t + k]);
  }
  if (t == 0) mine->largest[set][b] = part[0], *scale_of(args.rank) = history / 448.0f;
  __syncthreads();
  if (t < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t]);
    StoreReleaseSys(&peer->ready[b][args.rank], call);
    WaitAcquireSys(&mine->ready[b][t], call);
  }
  __syncthreads();
  if (t == 0) last = FetchAddAcqRelGpu(&mine->met, 1u) == call * gridDim.x - 1;
  __syncthreads();
  for (int r = 0; r < world; ++r) {
    const float scale = *scale_of(r);
    for (int i = b * kThreads + t; i < words; i += stride) {
      const std::uint32_t q = bytes(r)[i];
      const float2 low = TwoFromE4m3(q), high = TwoFromE4m3(q >> 16);
      Bits<__nv_bfloat16>* out = reinterpret_cast<std::uint16_t*>(args.out) + r * args.n + 4 * i;
      const float x[4] = {low.x, low.y, high.x, high.y};
      ushort4 packed;
      packed.x = Number<__nv_bfloat16>::FromFloat(x[0] * scale);
      packed.y = Number<__nv_bfloat16>::FromFloat(x[1] * scale);
      packed.z = Number<__nv_bfloat16>::FromFloat(x[2] * scale);
      packed.w = Number<__nv_bfloat16>::FromFloat(x[3] * scale);
      *reinterpret_cast<ushort4*>(out) = packed;
    }
  }
  if (last && t < world) {
    const Control* peer = reinterpret_cast<const Control*>(args.scratch_peers[t]);
    float largest = 0;
    for (int k = 0; k < gridDim.x; ++k) largest = fmaxf(largest, peer->largest[set][k]);
    args.amax[t] = largest;
  }
  if (t == 0) mine->calls[b] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.n / 4 + kThreads - 1) / kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  GatherParams<<<blocks, kThreads, 0, stream>>>(args);
}
