// Every word leaves its rank once and the switch delivers it to all `out`s, the sender's too. A
// vector store needs an address that is a multiple of 16 bytes, so the work is cut into quads of
// `out`, not of `in`: the first and last quad of a shard may be shared with its neighbours and are
// stored word by word. Block b of a rank meets the blocks b of the others only.
//
// A meeting adds one to a counter on all devices at once; each waits for its own. The first meeting
// of a call opens every `out`, the second one keeps everybody inside until all have stored.
// Counters are never reset: meeting m is complete at world * m, and nobody comes to m + 1 before.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 32;
constexpr int kThreads = 256;

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t calls[kMaxBlocks];    // that this block has completed
  std::uint32_t arrived[kMaxBlocks];  // of all ranks at all meetings of this block
};

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* all = reinterpret_cast<Control*>(args.scratch_multicast);
  __syncthreads();  //@before_arrive
  if (threadIdx.x == 0) {
    asm volatile("multimem.red.release.sys.global.add.u32 [%0], 1;" ::"l"(&all->arrived[blockIdx.x])
                 : "memory");  //@arrive
    asm volatile("fence.proxy.alias;" ::: "memory");
    const std::uint32_t complete = args.world * meeting;
    std::uint32_t count;
    do {
      count = LoadAcquireSys(&mine->arrived[blockIdx.x]);  //@observe
    } while (static_cast<std::int32_t>(count - complete) < 0);  //@wait
  }
  __syncthreads();  //@after_wait
}

__device__ void StoreAll(std::uint32_t* all, const std::uint32_t (&v)[4]) {
  asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(all),
               "f"(__uint_as_float(v[0])), "f"(__uint_as_float(v[1])), "f"(__uint_as_float(v[2])),
               "f"(__uint_as_float(v[3]))
               : "memory");
}

__device__ void StoreAll(std::uint32_t* all, std::uint32_t v) {
  asm volatile("multimem.st.relaxed.sys.global.u32 [%0], %1;" ::"l"(all), "r"(v) : "memory");
}

__global__ void __launch_bounds__(kThreads) AllGather(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const std::int64_t begin = args.rank * args.n;           // of the shard, in `out`
  const int n = args.n, shift = begin % 4, quads = (n + shift + 3) / 4;
  std::uint32_t* all = args.out_multicast + (begin - shift);

  int i = blockIdx.x * kThreads + threadIdx.x;
  std::uint32_t v[4];
  const auto load = [&] {
    for (int k = 0; k < 4; ++k) {
      const int from = 4 * i - shift + k;
      v[k] = from >= 0 && from < n ? args.in[from] : 0;
    }
  };
  load();                    // while the others arrive
  Meet(args, 2 * call - 1);  //@first
  while (i < quads) {
    const int at = 4 * i - shift;
    if (at >= 0 && at + 4 <= n) {
      StoreAll(all + 4 * i, v);
    } else {
      for (int k = 0; k < 4; ++k) {
        if (at + k >= 0 && at + k < n) StoreAll(all + 4 * i + k, v[k]);
      }
    }
    i += gridDim.x * kThreads;
    load();
  }
  Meet(args, 2 * call);
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 4 + 1 + kThreads) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllGather<<<blocks, kThreads, 0, stream>>>(args);
}
