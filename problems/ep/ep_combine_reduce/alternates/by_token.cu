// Blocks have tokens instead of columns: block b of a source sends whole rows of the tokens b,
// b + blocks, ... of all owners, and block b of an owner reduces these. Each source has a bit per
// token in a word of the owner's that tells which rows came, in place of marks.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256;  // at most 32 tokens of a block

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t sent[kMaxBlocks][kMaxRanks];     // by source: the last call whose rows are here
  std::uint32_t came[2][kMaxBlocks][kMaxRanks];  // by source: bits of tokens
};

__global__ void __launch_bounds__(kThreads) CombineReduce(Args args) {
  __shared__ std::uint32_t bits[kMaxRanks];
  __shared__ int list[1024], listed;  // own rows of this block's tokens
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int block = blockIdx.x, blocks = gridDim.x, world = args.world, rank = args.rank;
  const std::uint32_t call = mine->calls[block] + 1;
  const int tokens = static_cast<int>(args.tokens), vectors = static_cast<int>(args.hidden / 8);
  const std::int64_t set = call % 2 * world * tokens;
  const uint4* y = reinterpret_cast<const uint4*>(args.y);
  const auto slots = [&](int at) {
    return reinterpret_cast<uint4*>(args.scratch_peers[at] + sizeof(Control));
  };
  if (threadIdx.x < kMaxRanks) bits[threadIdx.x] = 0;
  if (threadIdx.x == 0) listed = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < args.rows; i += kThreads) {
    if (args.to[i] % tokens % blocks == block) list[atomicAdd(&listed, 1)] = i;
  }
  __syncthreads();
  for (int n = 0; n < listed; ++n) {
    const int i = list[n], owner = args.to[i] / tokens, token = args.to[i] % tokens;
    uint4* slot = slots(owner) + (set + token * world + rank) * vectors;
    for (int v = threadIdx.x; v < vectors; v += kThreads) slot[v] = y[i * vectors + v];
    if (threadIdx.x == 0) bits[owner] |= 1u << token / blocks;
  }
  __syncthreads();
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    peer->came[call % 2][block][rank] = bits[threadIdx.x];
    StoreReleaseSys(&peer->sent[block][rank], call);
    WaitAcquireSys(&mine->sent[block][threadIdx.x], call);
  }
  __syncthreads();
  const int count = (tokens - block + blocks - 1) / blocks;
  for (int n = threadIdx.x; n < count * vectors; n += kThreads) {
    const int token = n / vectors * blocks + block, at = n % vectors;
    float sum[8] = {};
    for (int r = 0; r < world; ++r) {
      if ((mine->came[call % 2][block][r] >> n / vectors & 1) == 0) continue;
      const uint4 row = slots(rank)[(set + token * world + r) * vectors + at];
      const Pack<__nv_bfloat16> answer = reinterpret_cast<const Pack<__nv_bfloat16>&>(row);
      const float weight = args.weights[token * world + r];
      for (int j = 0; j < 8; ++j) sum[j] = fmaf(weight, answer[j], sum[j]);
    }
    Pack<__nv_bfloat16> result;
    for (int j = 0; j < 8; ++j) result.Set(j, sum[j]);
    reinterpret_cast<Pack<__nv_bfloat16>*>(args.out)[token * vectors + at] = result;
  }
  if (threadIdx.x == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = args.tokens < kMaxBlocks ? static_cast<int>(args.tokens) : kMaxBlocks;
  CombineReduce<<<blocks, kThreads, 0, stream>>>(args);
}
