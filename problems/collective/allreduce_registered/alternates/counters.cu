#include <allranks/flags.h>
#include <allranks/numbers.h>

// Meetings by counters: each block adds one to a counter of its peers' blocks and waits until its
// own has come to a multiple of world. Pairs of elements, read by ranks in turn from the own on.
using namespace allranks;
using Half = Number<__half>;
constexpr int kMaxBlocks = 32, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks], arrived[kMaxBlocks];
};

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    AddReleaseSys(&peer->arrived[blockIdx.x], 1u);
  }
  if (threadIdx.x == 0) {
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    WaitAcquireSys(&mine->arrived[blockIdx.x], meeting * args.world);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t pairs = (args.n + 1) / 2;
  Meet(args, 2 * call - 1);
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < pairs; i += gridDim.x * kThreads) {
    const bool whole = 2 * i + 1 < args.n;
    std::uint32_t pair[kMaxRanks];
#pragma unroll
    for (int step = 0; step < kMaxRanks; ++step) {
      if (step >= args.world) continue;
      const auto* in =
          reinterpret_cast<const std::uint16_t*>(args.in_peers[(args.rank + step) % args.world]);
      pair[step] = whole ? reinterpret_cast<const std::uint32_t*>(in)[i] : in[2 * i];
    }
    float low = 0, high = 0;
#pragma unroll
    for (int step = 0; step < kMaxRanks; ++step) {
      if (step >= args.world) break;
      low += Half::ToFloat(static_cast<std::uint16_t>(pair[step]));
      high += Half::ToFloat(static_cast<std::uint16_t>(pair[step] >> 16));
    }
    auto* out = reinterpret_cast<std::uint16_t*>(args.out);
    if (whole) {
      const std::uint32_t upper = Half::FromFloat(high);
      reinterpret_cast<std::uint32_t*>(out)[i] = upper << 16 | Half::FromFloat(low);
    } else {
      out[2 * i] = Half::FromFloat(low);
    }
  }
  Meet(args, 2 * call);
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + 2 * kThreads - 1) / (2 * kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
