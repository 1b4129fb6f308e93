// By pulling: the prefill rank publishes its table, which also says that it has entered the call;
// the decode rank reads the pages from the other's `cache` across the link, and tells when it has
// done so. One block per layer.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxLayers = 16, kThreads = 512;

struct Control {
  std::uint32_t calls[kMaxLayers];
  std::uint32_t ready[kMaxLayers];  // from the prefill rank: calls that it has entered
  std::uint32_t done[kMaxLayers];   // from the decode rank: calls whose pages it has read
};

__global__ void __launch_bounds__(kThreads) Transfer(Args args) {
  __shared__ std::uint32_t total;
  const int half = args.world / 2, layer = blockIdx.x;
  const int other = args.rank < half ? args.rank + half : args.rank - half;
  if (args.rank >= 2 * half) return;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[other]);
  const std::uint32_t call = mine->calls[layer] + 1;
  const std::int64_t used = args.used;
  if (threadIdx.x == 0) total = 0;
  if (args.rank < half) {  // every block of the decode rank has a copy of the table
    std::int32_t* table = reinterpret_cast<std::int32_t*>(theirs + 1) + layer * used;
    for (std::int64_t j = threadIdx.x; j < used; j += kThreads) table[j] = args.table[j];
    __syncthreads();
    if (threadIdx.x == 0) {
      StoreReleaseSys(&theirs->ready[layer], call);
      WaitAcquireSys(&mine->done[layer], call);
    }
  } else {
    if (threadIdx.x == 0) WaitAcquireSys(&mine->ready[layer], call);
    __syncthreads();
    const std::int32_t* from = reinterpret_cast<const std::int32_t*>(mine + 1) + layer * used;
    const std::int64_t heads = args.heads, tokens = args.tokens, quads = args.quads;
    const std::int64_t page_vectors = heads * tokens * quads, pool = layer * args.pages;
    const uint4* cache = reinterpret_cast<const uint4*>(args.cache_peers[other]);
    uint4* out = reinterpret_cast<uint4*>(args.out);
    std::uint32_t sum = 0;
    for (std::int64_t i = threadIdx.x; i < used * page_vectors; i += kThreads) {
      const std::int64_t j = i / page_vectors, entry = i % page_vectors / quads, q = i % quads;
      const std::int64_t head = entry / tokens, token = entry % tokens;
      const uint4 v = cache[(pool + from[j]) * page_vectors + i % page_vectors];
      out[(pool + args.table[j]) * page_vectors + (token * heads + head) * quads + q] = v;
      sum += v.x + v.y + v.z + v.w;
    }
    sum = __reduce_add_sync(~0u, sum);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, sum);
    __syncthreads();
    if (threadIdx.x == 0) {
      args.sums[layer] = total;
      StoreReleaseSys(&theirs->done[layer], call);
    }
  }
  if (threadIdx.x == 0) mine->calls[layer] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Transfer<<<static_cast<int>(args.layers), kThreads, 0, stream>>>(args);
}
