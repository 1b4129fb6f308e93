// Straight into place: the decode rank publishes its table, which also says that it has entered the
// call; the prefill rank writes the pages where they belong. The decode rank then adds them up.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxLayers = 16, kThreads = 512;

struct Control {
  std::uint32_t calls[kMaxLayers];
  std::uint32_t open[kMaxLayers];     // from the decode rank: calls that it has entered
  std::uint32_t written[kMaxLayers];  // from the prefill rank: calls whose pages are here
};

__global__ void __launch_bounds__(kThreads) Transfer(Args args) {
  __shared__ std::uint32_t total;
  const int half = args.world / 2, layer = blockIdx.x;
  const int other = args.rank < half ? args.rank + half : args.rank - half;
  if (args.rank >= 2 * half) return;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[other]);
  const std::uint32_t call = mine->calls[layer] + 1;
  const std::int64_t used = args.used, heads = args.heads, tokens = args.tokens;
  const std::int64_t quads = args.quads, page_vectors = heads * tokens * quads;
  const std::int64_t pool = layer * args.pages;
  if (args.rank < half) {
    if (threadIdx.x == 0) WaitAcquireSys(&mine->open[layer], call);
    __syncthreads();
    const std::int32_t* to = reinterpret_cast<const std::int32_t*>(mine + 1) + layer * used;
    const uint4* cache = reinterpret_cast<const uint4*>(args.cache);
    uint4* out = reinterpret_cast<uint4*>(args.out_peers[other]);
    for (std::int64_t i = threadIdx.x; i < used * page_vectors; i += kThreads) {
      const std::int64_t j = i / page_vectors, entry = i % page_vectors / quads, q = i % quads;
      const std::int64_t token = entry / heads, head = entry % heads;
      out[(pool + to[j]) * page_vectors + i % page_vectors] =
          cache[(pool + args.table[j]) * page_vectors + (head * tokens + token) * quads + q];
    }
    __syncthreads();
    if (threadIdx.x == 0) StoreReleaseSys(&theirs->written[layer], call);
  } else {
    std::int32_t* table = reinterpret_cast<std::int32_t*>(theirs + 1) + layer * used;
    for (std::int64_t j = threadIdx.x; j < used; j += kThreads) table[j] = args.table[j];
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
      StoreReleaseSys(&theirs->open[layer], call);
      WaitAcquireSys(&mine->written[layer], call);
    }
    __syncthreads();
    const uint4* out = reinterpret_cast<const uint4*>(args.out);
    std::uint32_t sum = 0;
    for (std::int64_t i = threadIdx.x; i < used * page_vectors; i += kThreads) {
      const std::int64_t page = pool + args.table[i / page_vectors];
      const uint4 v = out[page * page_vectors + i % page_vectors];
      sum += v.x + v.y + v.z + v.w;
    }
    sum = __reduce_add_sync(~0u, sum);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, sum);
    __syncthreads();
    if (threadIdx.x == 0) args.sums[layer] = total;
  }
  if (threadIdx.x == 0) mine->calls[layer] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Transfer<<<static_cast<int>(args.layers), kThreads, 0, stream>>>(args);
}
