#include <allranks/flags.h>

// Sixteen bytes at a time, a word and the number of its call, in one access. A buffer holds half of
// the message; the second half follows when the first one was taken.
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 128, kData = 1024;

struct Control {
  std::uint32_t calls[kMaxBlocks], taken[kMaxBlocks];  // taken: by the receiver, counts halves
};

__global__ void __launch_bounds__(kThreads) Put(Args args) {
  const int next = (args.rank + 1) % args.world, before = (args.rank + args.world - 1) % args.world;
  const int n = args.n, half = (n + 1) / 2, block = blockIdx.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* source = reinterpret_cast<Control*>(args.scratch_peers[before]);
  const std::uint32_t call = mine->calls[block] + 1;
  for (std::uint32_t part = 0; part < 2; ++part) {
    const std::uint32_t turn = 2 * call + part;
    const int begin = part * half, end = begin + half < n ? begin + half : n;
    ulonglong2* to = reinterpret_cast<ulonglong2*>(args.scratch_peers[next] + kData) - begin;
    const ulonglong2* from = reinterpret_cast<const ulonglong2*>(args.scratch + kData) - begin;
    const int first = begin + block * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
    for (int i = first; i < end; i += stride) {
      WaitRelaxedSys(&mine->taken[block], call == 1 && part == 0 ? 0 : turn - 1);
      asm volatile(
          "{ .reg .b128 all; mov.b128 all, {%1, %2}; st.relaxed.sys.global.b128 [%0], all; }" ::"l"(
              to + i),
          "l"(args.in[i]), "l"(static_cast<std::uint64_t>(turn))
          : "memory");
    }
    for (int i = first; i < end; i += stride) {
      std::uint64_t word, flag;
      do {
        asm volatile(
            "{ .reg .b128 all; ld.relaxed.sys.global.b128 all, [%2]; mov.b128 {%0, %1}, all; }"
            : "=l"(word), "=l"(flag)
            : "l"(from + i)
            : "memory");
      } while (flag != turn);
      args.out[i] = word;
    }
    __syncthreads();
    if (threadIdx.x == 0) StoreRelaxedSys(&source->taken[block], turn);
  }
  if (threadIdx.x == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = ((args.n + 1) / 2 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Put<<<blocks, kThreads, 0, stream>>>(args);
}
