#include <allranks/flags.h>

// Stores of 8 bytes, a word and the number of its call, two at once. There are two buffers: call k
// may overwrite that of call k - 2 when the receiver has said that it has taken everything from it.
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 128, kData = 1024;

struct Control {
  std::uint32_t calls[kMaxBlocks];  // own: that this block has completed
  std::uint32_t taken[kMaxBlocks];  // by the receiver: the last call whose words it has
};
static_assert(sizeof(Control) <= kData);

__device__ void Send(ulonglong2* to, ulonglong2 words) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(words.x), "l"(words.y)
               : "memory");
}

__device__ ulonglong2 Look(const ulonglong2* from) {
  ulonglong2 words;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(words.x), "=l"(words.y)
               : "l"(from)
               : "memory");
  return words;
}

__global__ void __launch_bounds__(kThreads) Put(Args args) {
  const int next = (args.rank + 1) % args.world, block = blockIdx.x;
  const int n = args.n, pairs = (n + 1) / 2;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* source =
      reinterpret_cast<Control*>(args.scratch_peers[(args.rank + args.world - 1) % args.world]);
  const std::uint32_t call = mine->calls[block] + 1;
  const std::uint64_t flag = std::uint64_t{call} << 32;
  ulonglong2* to = reinterpret_cast<ulonglong2*>(args.scratch_peers[next] + kData);
  const ulonglong2* from = reinterpret_cast<const ulonglong2*>(args.scratch + kData);
  const int buffer = call % 2 * pairs, stride = gridDim.x * kThreads;

  for (int i = block * kThreads + threadIdx.x; i < pairs; i += stride) {
    const std::uint32_t first = args.in[2 * i], second = 2 * i + 1 < n ? args.in[2 * i + 1] : 0;
    WaitRelaxedSys(&mine->taken[block], call - 2);
    Send(&to[buffer + i], {flag | first, flag | second});
  }
  for (int i = block * kThreads + threadIdx.x; i < pairs; i += stride) {
    ulonglong2 words;
    do {
      words = Look(&from[buffer + i]);
    } while (words.x >> 32 != call || words.y >> 32 != call);
    args.out[2 * i] = words.x;
    if (2 * i + 1 < n) args.out[2 * i + 1] = words.y;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    StoreRelaxedSys(&source->taken[block], call);
    mine->calls[block] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = ((args.n + 1) / 2 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Put<<<blocks, kThreads, 0, stream>>>(args);
}
