// Layer by layer in kernels: wait until the stage is free, push the layer as it is, tell; the other
// side waits, moves words to their places one by one, adds them up, and gives the stage back.
#include <allranks/flags.h>
using namespace allranks;

struct Control {
  std::uint32_t steps;           // layers of all calls
  std::uint32_t arrived, freed;  // the same, from the peer
};
constexpr int kBlocks = 32, kThreads = 256, kData = 256;

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}

__global__ void Await(Args args) {
  const Control* mine = ControlOf(args, args.rank);
  if (args.rank < args.world / 2) {
    WaitAcquireSys(&mine->freed, mine->steps);
  } else {
    WaitAcquireSys(&mine->arrived, mine->steps + 1);
  }
}

__global__ void Move(Args args, std::int64_t layer) {
  const int half = args.world / 2;
  const bool sends = args.rank < half;
  const std::int64_t words = 4 * args.quads, page_words = args.heads * args.tokens * words;
  std::uint8_t* scratch = args.scratch_peers[sends ? args.rank + half : args.rank];
  std::uint32_t* stage = reinterpret_cast<std::uint32_t*>(scratch + kData);
  const std::int64_t all = args.used * page_words;
  std::uint32_t sum = 0;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < all; i += kBlocks * kThreads) {
    const std::int64_t page = (layer * args.pages + args.table[i / page_words]) * page_words;
    const std::int64_t inside = i % page_words, w = inside % words, entry = inside / words;
    const std::int64_t head = entry / args.tokens, token = entry % args.tokens;
    if (sends) {
      stage[i] = args.cache[page + inside];
    } else {
      args.out[page + (token * args.heads + head) * words + w] = stage[i];
      sum += stage[i];
    }
  }
  sum = __reduce_add_sync(~0u, sum);
  if (!sends && threadIdx.x % 32 == 0) atomicAdd(&args.sums[layer], sum);
}

__global__ void Clear(Args args) {
  if (args.rank >= args.world / 2) args.sums[threadIdx.x] = 0;
}

__global__ void Tell(Args args) {
  const int half = args.world / 2;
  const std::uint32_t step = ++ControlOf(args, args.rank)->steps;
  Control* peer = ControlOf(args, args.rank < half ? args.rank + half : args.rank - half);
  StoreReleaseSys(args.rank < half ? &peer->arrived : &peer->freed, step);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  if (args.rank >= args.world / 2 * 2) return;
  Clear<<<1, static_cast<int>(args.layers), 0, stream>>>(args);
  for (std::int64_t layer = 0; layer < args.layers; ++layer) {
    Await<<<1, 1, 0, stream>>>(args);
    Move<<<kBlocks, kThreads, 0, stream>>>(args, layer);
    Tell<<<1, 1, 0, stream>>>(args);
  }
}
