// All-reduce by one shot: every rank's `out` is the sum of all ranks' `in`.
// Fill the region below; statement.md says what holds and what is asked for.
#include "problem.h"

// >>> edit
// No flags beside the data: each element travels as eight bytes, value and number of the call,
// which arrive together or not at all. So neither a fence nor a barrier is needed, at the price of
// twice the bytes. Two sets of slots, as with flags: a peer's call k + 2 needs this rank's words of
// call k + 1, which this rank sends after it has read all of call k.

constexpr int kMaxBlocks = 64, kThreads = 256, kData = 1024;

// Two elements: {value, call} twice.
struct Packet {
  unsigned long long word[2];
};

__device__ void Send(Packet* to, float a, float b, std::uint32_t call) {
  const unsigned long long high = static_cast<unsigned long long>(call) << 32;
  asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(to),
               "l"(high | __float_as_uint(a)), "l"(high | __float_as_uint(b))
               : "memory");
}

__device__ float2 Receive(const Packet* from, std::uint32_t call) {
  Packet p;
  do {
    asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
                 : "=l"(p.word[0]), "=l"(p.word[1])
                 : "l"(from)
                 : "memory");
  } while (p.word[0] >> 32 != call || p.word[1] >> 32 != call);
  return {__uint_as_float(p.word[0]), __uint_as_float(p.word[1])};
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;
  const std::int64_t pairs = (args.n + 1) / 2;
  const std::int64_t set = kData + (call & 1) * args.world * pairs * sizeof(Packet);
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  const std::int64_t stride = gridDim.x * kThreads;

  for (std::int64_t i = first; i < pairs; i += stride) {
    const float a = args.in[2 * i], b = 2 * i + 1 < args.n ? args.in[2 * i + 1] : 0.0f;
    for (int step = 1; step < args.world; ++step) {
      const int r = (args.rank + step) % args.world;
      Send(reinterpret_cast<Packet*>(args.scratch_peers[r] + set) + args.rank * pairs + i, a, b,
           call);
    }
  }
  const Packet* slots = reinterpret_cast<const Packet*>(args.scratch + set);
  for (std::int64_t i = first; i < pairs; i += stride) {
    float2 sum = {0, 0};
    for (int r = 0; r < args.world; ++r) {
      float2 v;
      if (r == args.rank) {
        v = {args.in[2 * i], 2 * i + 1 < args.n ? args.in[2 * i + 1] : 0.0f};
      } else {
        v = Receive(slots + r * pairs + i, call);
      }
      sum = {sum.x + v.x, sum.y + v.y};
    }
    args.out[2 * i] = sum.x;
    if (2 * i + 1 < args.n) args.out[2 * i + 1] = sum.y;
  }
  __syncthreads();
  if (threadIdx.x == 0) calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = ((args.n + 1) / 2 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
// <<< edit
