// Block (layer, part) of the prefill rank writes its share of the layer's pages, already in the new
// layout, into a stage at the decode rank, and publishes it by a flag. The same block there reads
// its share as soon as it has come, whatever other layers do, moves it to its own pages, and adds
// up. Neither side needs the other's table, and nobody asks whether a peer has entered the call.
//
// There are two stages, used in turn. A decode rank that enters call k reports that it has read all
// of call k - 1; the writer of call k needs this report of call k - 2.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 64, kParts = 4, kThreads = 256;

struct alignas(16) Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t arrived[kMaxBlocks];   // from the prefill rank: calls whose share is here
  std::uint32_t freed[kMaxBlocks];     // from the decode rank: calls whose share it has read
  std::uint32_t sums[kMaxBlocks];      // of shares
  std::uint32_t finished[kMaxBlocks];  // by layer: shares added up, over all calls
};

// A layer's pages, in the order page, token, head, quad.
__device__ uint4* StageOf(Control* control, std::uint32_t call, int vectors) {
  const int layer = blockIdx.x / kParts;
  const std::int64_t row = call % 2 * gridDim.x / kParts + layer;
  return reinterpret_cast<uint4*>(control + 1) + row * vectors;
}

__device__ std::uint32_t BlockSum(std::uint32_t value) {
  __shared__ std::uint32_t waves[kThreads / 32];
  value = __reduce_add_sync(~0u, value);
  if (threadIdx.x % 32 == 0) waves[threadIdx.x / 32] = value;
  __syncthreads();  //@waves
  return __reduce_add_sync(~0u, threadIdx.x % 32 < kThreads / 32 ? waves[threadIdx.x % 32] : 0);
}

__global__ void __launch_bounds__(kThreads) Transfer(Args args) {
  const int half = args.world / 2, block = blockIdx.x;
  const bool sends = args.rank < half;
  if (args.rank >= 2 * half) return;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs =
      reinterpret_cast<Control*>(args.scratch_peers[sends ? args.rank + half : args.rank - half]);
  const std::uint32_t call = mine->calls[block] + 1;
  const int layer = block / kParts, part = block % kParts;
  const int heads = args.heads, tokens = args.tokens, quads = args.quads;
  const int page_vectors = heads * tokens * quads, vectors = args.used * page_vectors;
  const int first = part * vectors / kParts + threadIdx.x;
  const int end = (part + 1) * vectors / kParts;
  const std::int64_t pool = layer * args.pages;
  const auto page_of = [&](int i) { return pool + args.table[i / page_vectors]; };

  if (sends) {
    if (threadIdx.x == 0) WaitAcquireSys(&mine->freed[block], call - 2);  //@free
    __syncthreads();                                                      //@room
    uint4* stage = StageOf(theirs, call, vectors);
    const uint4* cache = reinterpret_cast<const uint4*>(args.cache);
#pragma unroll 4
    for (int i = first; i < end; i += kThreads) {
      const int entry = i % page_vectors / quads, token = entry / heads, head = entry % heads;
      const int inside = (head * tokens + token) * quads + i % quads;
      stage[i] = cache[page_of(i) * page_vectors + inside];
    }
    __syncthreads();                                                       //@sent
    if (threadIdx.x == 0) StoreReleaseSys(&theirs->arrived[block], call);  //@tell
  } else {
    if (threadIdx.x == 0) {
      StoreReleaseSys(&theirs->freed[block], call - 1);  //@give
      WaitAcquireSys(&mine->arrived[block], call);       //@arrived
    }
    __syncthreads();  //@here
    const uint4* stage = StageOf(mine, call, vectors);
    uint4* out = reinterpret_cast<uint4*>(args.out);
    std::uint32_t sum = 0;
#pragma unroll 4
    for (int i = first; i < end; i += kThreads) {
      const uint4 v = stage[i];
      out[page_of(i) * page_vectors + i % page_vectors] = v;
      sum += v.x + v.y + v.z + v.w;
    }
    sum = BlockSum(sum);
    if (threadIdx.x == 0) {
      mine->sums[block] = sum;
      // The last of a layer's shares adds them up.
      if (FetchAddAcqRelGpu(&mine->finished[layer], 1u) == call * kParts - 1) {  //@finish
        std::uint32_t total = 0;
        for (int p = 0; p < kParts; ++p) total += mine->sums[layer * kParts + p];
        args.sums[layer] = total;
      }
    }
  }
  if (threadIdx.x == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Transfer<<<args.layers * kParts, kThreads, 0, stream>>>(args);
}
