#include <allranks/flags.h>

// Block d deals with the pairs for owner d. It counts them and exchanges the numbers with the
// blocks d of all ranks; from those of the ranks before it follows where its pairs begin in the
// outputs of rank d, and it stores them there. The owner's number says that it has entered the
// call; its block d waits until all sources are done. Numbers exist twice, for odd and even calls.

using namespace allranks;

constexpr int kThreads = 1024, kWarps = kThreads / 32;

struct Control {
  std::uint64_t pairs[2][kMaxRanks][kMaxRanks];  // by owner and source: call, pairs
  std::uint32_t done[kMaxRanks];                 // by source: the last call whose pairs are here
  std::uint32_t calls[kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) Push(Args args) {
  __shared__ int of_warp[kWarps], of_source[kMaxRanks], place[kThreads];
  const int owner = blockIdx.x, rank = args.rank, world = args.world, quads = args.quads;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, count = args.count[0];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[owner] + 1, odd = call % 2;

  int pairs = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) pairs += args.ids[i] % world == owner;
  pairs = __reduce_add_sync(~0u, pairs);
  if (lane == 0) of_warp[warp] = pairs;
  __syncthreads();
  if (threadIdx.x < world) {
    std::uint64_t word = std::uint64_t{call} << 32;
    for (int w = 0; w < kWarps; ++w) word += of_warp[w];
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->pairs[odd][owner][rank], word);
    do {
      word = LoadAcquireSys(&mine->pairs[odd][owner][threadIdx.x]);
    } while (word >> 32 != call);
    of_source[threadIdx.x] = static_cast<int>(word);
  }
  __syncthreads();
  int next = 0;
  for (int s = 0; s < rank; ++s) next += of_source[s];
  if (owner == rank && threadIdx.x < world) args.received[threadIdx.x] = of_source[threadIdx.x];

  for (int base = 0; base < count; base += kThreads) {
    const int i = base + threadIdx.x;
    const bool goes = i < count && args.ids[i] % world == owner;
    const std::uint32_t all = __ballot_sync(~0u, goes);
    if (lane == 0) of_warp[warp] = __popc(all);
    __syncthreads();
    int at = next + __popc(all & ((1u << lane) - 1));
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) at += of_warp[w];
      next += of_warp[w];
    }
    place[threadIdx.x] = goes ? at : -1;
    if (goes) args.out_ids_peers[owner][at] = args.ids[i];
    __syncthreads();
    for (int v = threadIdx.x; v < min(count - base, kThreads) * quads; v += kThreads) {
      if (place[v / quads] < 0) continue;
      reinterpret_cast<uint4*>(args.out_values_peers[owner])[place[v / quads] * quads + v % quads] =
          reinterpret_cast<const uint4*>(args.values)[base * quads + v];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[owner]);
    StoreReleaseSys(&peer->done[rank], call);
    mine->calls[owner] = call;
  }
  if (owner == rank && threadIdx.x < world) WaitAcquireSys(&mine->done[threadIdx.x], call);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Push<<<args.world, kThreads, 0, stream>>>(args);
}
