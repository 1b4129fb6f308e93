// Every rank shows its input to all and adds up everything itself. Blocks of the same number have
// the same vectors. Inputs are shown in two places by turns: who shows call k + 2 has met all in
// call k + 1, and they had ended call k.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 128, kData = 16384;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t shown[kMaxBlocks][kMaxRanks];  // by peer: the last call
};

// The part of the tree below a place; places are known when this is compiled.
template <int kPlace, int kSpan, int kWorld, class At>
__device__ float4 Below(At at) {
  float4 sum = at(kPlace);
  const auto add = [&](float4 x) { sum = {sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w}; };
  constexpr int kHalf = kSpan / 2;
  if constexpr (kPlace > 0 && kHalf > 0) add(Below<kPlace - kHalf, kHalf, kWorld>(at));
  if constexpr (kHalf > 0) {
    constexpr int kUp = kPlace + kHalf < kWorld       ? kHalf
                        : kPlace + kHalf / 2 < kWorld ? kHalf / 2
                                                      : kHalf / 4;
    if constexpr (kUp > 0) add(Below<kPlace + kUp, kUp, kWorld>(at));
  }
  return sum;
}

template <int kWorld>
__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  const int block = blockIdx.x, t = threadIdx.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[block] + 1;
  const int vectors = static_cast<int>(args.n / 4), first = block * kThreads + t;
  const auto shown = [&](int rank) {
    return reinterpret_cast<float4*>(args.scratch_peers[rank] + kData) + call % 2 * vectors;
  };
  for (int i = first; i < vectors; i += gridDim.x * kThreads) {
    shown(args.rank)[i] = reinterpret_cast<const float4*>(args.in)[i];
  }
  __syncthreads();
  if (t < kWorld) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t]);
    StoreReleaseSys(&peer->shown[block][args.rank], call);
    WaitAcquireSys(&mine->shown[block][t], call);
  }
  __syncthreads();
  for (int i = first; i < vectors; i += gridDim.x * kThreads) {
    const bool second = i >= (vectors + 1) / 2;
    float4 v[kWorld];
#pragma unroll
    for (int place = 0; place < kWorld; ++place) {
      const int other = kWorld % 2 == 0 ? kWorld - 1 - place : (place + 1) % kWorld;
      v[place] = shown(second ? other : place)[i];
    }
    constexpr int kSpan = kWorld > 4 ? 8 : kWorld > 2 ? 4 : 2;
    reinterpret_cast<float4*>(args.out)[i] =
        Below<0, kSpan, kWorld>([&](int place) { return v[place]; });
  }
  if (t == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const auto kernel = args.world == 2   ? AllReduce<2>
                      : args.world == 3 ? AllReduce<3>
                      : args.world == 4 ? AllReduce<4>
                      : args.world == 5 ? AllReduce<5>
                      : args.world == 6 ? AllReduce<6>
                      : args.world == 7 ? AllReduce<7>
                                        : AllReduce<8>;
  const std::int64_t needed = (args.n / 4 + kThreads - 1) / kThreads;
  kernel<<<static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks), kThreads, 0, stream>>>(
      args);
}
