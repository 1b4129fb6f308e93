#include <allranks/flags.h>
#include <allranks/numbers.h>

// Warp w of a block brings the vectors of rank w into shared memory; then all warps sum. Each
// warp meets its own rank: it waits for nobody else before it begins, and tells that rank alone
// when it is done.
using namespace allranks;
using Vector = Pack<__nv_bfloat16>;
constexpr int kMaxBlocks = 64, kTile = 64;  // vectors of the shard at a time

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t entered[kMaxBlocks][kMaxRanks];
  std::uint32_t read[kMaxBlocks][kMaxRanks];
};

__global__ void ReduceScatter(Args args) {
  __shared__ Vector tile[kMaxRanks][kTile];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t call = mine->calls[b] + 1;
  const std::int64_t shard = (args.n + 8 * args.world - 1) / (8 * args.world);
  const std::int64_t begin = args.rank * shard;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[warp]);
  if (lane == 0) {
    StoreReleaseSys(&peer->entered[b][args.rank], call);
    WaitAcquireSys(&mine->entered[b][warp], call);
  }
  __syncwarp();
  const auto* in = reinterpret_cast<const std::uint16_t*>(args.in_peers[warp]);
  for (std::int64_t first = b * kTile; first < shard; first += gridDim.x * kTile) {
    Vector v[kTile / 32] = {};
    for (int j = 0; j < kTile / 32; ++j) {
      const std::int64_t i = first + 32 * j + lane, at = 8 * (begin + i);
      if (i >= shard) continue;
      if (at + 8 <= args.n) {
        v[j] = *reinterpret_cast<const Vector*>(in + at);
      } else {
        for (int k = 0; k < 8; ++k) v[j].at[k] = at + k < args.n ? in[at + k] : 0;
      }
    }
    for (int j = 0; j < kTile / 32; ++j) tile[warp][32 * j + lane] = v[j];
    __syncthreads();
    for (int e = threadIdx.x; e < 8 * kTile; e += blockDim.x) {
      const std::int64_t i = 8 * first + e;
      if (i >= 8 * shard || 8 * begin + i >= args.n) break;
      float sum = tile[0][e / 8][e % 8];
      for (int r = 1; r < args.world; ++r) sum += tile[r][e / 8][e % 8];
      args.out[i] = sum;
    }
    __syncthreads();
  }
  if (lane == 0) {
    StoreReleaseSys(&peer->read[b][args.rank], call);
    WaitAcquireSys(&mine->read[b][warp], call);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[b] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t shard = (args.n + 8 * args.world - 1) / (8 * args.world);
  const std::int64_t needed = (shard + kTile - 1) / kTile;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  ReduceScatter<<<blocks, 32 * args.world, 0, stream>>>(args);
}
