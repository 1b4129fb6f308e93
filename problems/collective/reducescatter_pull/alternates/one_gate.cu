#include <allranks/flags.h>

// The device meets its peers as a whole. Block 0 tells and waits, then opens a gate for its other
// blocks; the last block that has read tells the peers. Flags do not depend on the grid.
using namespace allranks;
constexpr int kBlocks = 32, kThreads = 128;

struct Control {
  std::uint32_t calls, gate, done;  // done: blocks of all calls that have read
  std::uint32_t entered[kMaxRanks], read[kMaxRanks];
};

__global__ void ReduceScatter(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % args.world]);
  const std::uint32_t call = mine->calls + 1;
  __shared__ bool last;
  if (blockIdx.x == 0) {
    if (threadIdx.x < args.world) {
      StoreReleaseSys(&peer->entered[args.rank], call);
      WaitAcquireSys(&mine->entered[threadIdx.x], call);
    }
    __syncthreads();
    if (threadIdx.x == 0) StoreReleaseGpu(&mine->gate, call);
  }
  if (threadIdx.x == 0) WaitAcquireGpu(&mine->gate, call);
  __syncthreads();

  // Pairs of elements: shards begin at even elements.
  const std::int64_t shard = 4 * ((args.n + 8 * args.world - 1) / (8 * args.world));
  const std::int64_t begin = args.rank * shard;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < shard; i += kBlocks * kThreads) {
    const std::int64_t left = args.n - 2 * (begin + i);
    if (left <= 0) break;
    std::uint32_t pair[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world) continue;
      const auto* in = reinterpret_cast<const std::uint16_t*>(args.in_peers[r]) + 2 * (begin + i);
      pair[r] = left > 1 ? *reinterpret_cast<const std::uint32_t*>(in) : *in;
    }
    float low = __uint_as_float(pair[0] << 16), high = __uint_as_float(pair[0] & 0xffff0000u);
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r >= args.world) break;
      low += __uint_as_float(pair[r] << 16);
      high += __uint_as_float(pair[r] & 0xffff0000u);
    }
    args.out[2 * i] = low;
    if (left > 1) args.out[2 * i + 1] = high;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    last = FetchAddAcqRelGpu(&mine->done, 1u) == call * kBlocks - 1;
  }
  __syncthreads();
  if (!last) return;
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&peer->read[args.rank], call);
    WaitAcquireSys(&mine->read[threadIdx.x], call);
  }
  if (threadIdx.x == 0) mine->calls = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  ReduceScatter<<<kBlocks, kThreads, 0, stream>>>(args);
}
