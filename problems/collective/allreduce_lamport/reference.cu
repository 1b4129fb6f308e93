#include <allranks/numbers.h>

// No flags: a word of zero bits means "not here yet", so a word of two +0 travels as two -0.
// Everyone sends its vector to all ranks and polls its own memory until every word is there.
//
// There are three sets of slots, for calls by turns. In call k a rank clears the set of call k - 1,
// which it has used up. No peer writes there before call k + 2, and it gets there only with this
// rank's words of call k + 1, which are sent by the kernel after the one that clears. Thread i of
// every rank has the same vectors, so only the threads i of all ranks depend on each other.
using namespace allranks;
using Half = Number<__half>;
constexpr int kMaxBlocks = 64, kThreads = 128, kSets = 3, kData = 1024;

__device__ void Send(uint4* to, uint4 v) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");  //@send
}
__device__ uint4 Receive(const uint4* from) {
  uint4 v;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");  //@receive
  return v;
}

__device__ std::uint32_t Present(std::uint32_t word) { return word == 0 ? 0x80008000u : word; }
// Each word says for itself whether it is here: sixteen bytes need not come together.
__device__ bool Absent(uint4 v) { return v.x == 0 || v.y == 0 || v.z == 0 || v.w == 0; }

// Vector i of the input, of which elements from n on count as zero.
__device__ uint4 Input(const Args& args, int i) {
  const int left = static_cast<int>(args.n) - 8 * i;
  uint4 v;
  if (left >= 8) {
    v = reinterpret_cast<const uint4*>(args.in)[i];
  } else {
    const std::uint16_t* in = reinterpret_cast<const std::uint16_t*>(args.in) + 8 * i;
    std::uint32_t word[4] = {};
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      if (k < left) word[k / 2] |= in[k] << 16 * (k % 2);
    }
    v = {word[0], word[1], word[2], word[3]};
  }
  return {Present(v.x), Present(v.y), Present(v.z), Present(v.w)};
}

__device__ std::uint32_t Get(uint4 v, int k) {
  return k == 0 ? v.x : k == 1 ? v.y : k == 2 ? v.z : v.w;
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;
  const int world = args.world, n = args.n, vectors = (n + 7) / 8;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const int set = call % kSets, used = (call + kSets - 1) % kSets;
  // What rank `from` sends to rank `to`.
  const auto slot = [&](int to, int set, int from) {
    return reinterpret_cast<uint4*>(args.scratch_peers[to] + kData) +
           (set * world + from) * vectors;
  };
  for (int i = first; i < vectors; i += stride) {
    const uint4 v = Input(args, i);
    for (int step = 1; step < world; ++step) {
      const int r = args.rank + step < world ? args.rank + step : args.rank + step - world;
      Send(&slot(r, set, args.rank)[i], v);
    }
    for (int r = 0; r < world; ++r) {
      Send(&slot(args.rank, used, r)[i], {0, 0, 0, 0});  //@clear
    }
  }
  for (int i = first; i < vectors; i += stride) {
    uint4 v[kMaxRanks];
    bool absent = true;
    while (absent) {  //@wait
      absent = false;
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {  // all loads are on their way before one is looked at
        if (r < world)
          v[r] = r == args.rank ? Input(args, i) : Receive(&slot(args.rank, set, r)[i]);
      }
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) absent |= r < world && Absent(v[r]);
    }
    std::uint32_t sum[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float low = 0, high = 0;
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (r >= world) break;  //@ranks
        const float x = Half::ToFloat(static_cast<std::uint16_t>(Get(v[r], k)));
        low += x;
        high += Half::ToFloat(static_cast<std::uint16_t>(Get(v[r], k) >> 16));
      }
      sum[k] = Half::FromFloat(low) | static_cast<std::uint32_t>(Half::FromFloat(high)) << 16;
    }
    const int left = n - 8 * i;
    if (left >= 8) {
      reinterpret_cast<uint4*>(args.out)[i] = {sum[0], sum[1], sum[2], sum[3]};
      continue;
    }
    std::uint16_t* out = reinterpret_cast<std::uint16_t*>(args.out) + 8 * i;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      if (k < left) out[k] = sum[k / 2] >> 16 * (k % 2);
    }
  }
  __syncthreads();                                 //@all_read
  if (threadIdx.x == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.n + 8 * kThreads - 1) / (8 * kThreads));
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
