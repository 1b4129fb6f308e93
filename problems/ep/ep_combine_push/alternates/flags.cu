// Plain stores and one released flag per block and rank. Block b has the tokens b, b + blocks, ...
// of all owners, and a mask of its answers per owner, token and source goes before the flag.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;

constexpr int kBlocks = 16, kThreads = 128, kMaxTokens = 64;

struct Control {
  std::uint32_t calls[kBlocks];
  std::uint32_t sent[kBlocks][kMaxRanks];         // by source: the last call that is here
  std::uint32_t masks[2][kMaxTokens][kMaxRanks];  // by source: experts with an answer
  float gates[2][kMaxTokens][kMaxRanks][4];
};

__global__ void __launch_bounds__(kThreads) Combine(Args args) {
  __shared__ std::uint32_t masks[kMaxRanks * kMaxTokens];  // by place of the token
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1, set = call % 2;
  const int rank = args.rank, world = args.world, per = static_cast<int>(args.per);
  const int tokens = static_cast<int>(args.tokens), most = static_cast<int>(args.most);
  const int vectors = static_cast<int>(args.hidden / 8), block = blockIdx.x;
  const auto slot = [&](int at, int token, int source, int e) {
    const std::int64_t row = ((set * tokens + token) * world + source) * per + e;
    return reinterpret_cast<uint4*>(args.scratch_peers[at] + sizeof(Control)) + row * vectors;
  };
  const auto control = [&](int at) { return reinterpret_cast<Control*>(args.scratch_peers[at]); };
  for (int i = threadIdx.x; i < world * tokens; i += kThreads) masks[i] = 0;
  __syncthreads();
  for (int i = 0; i < per * most; ++i) {
    const int e = i / most, place = args.to[i], owner = place / tokens, token = place % tokens;
    if (token % kBlocks != block || i % most >= args.used[e]) continue;
    const uint4* row = reinterpret_cast<const uint4*>(args.y) + i * vectors;
    uint4* to = slot(owner, token, rank, e);
    for (int v = threadIdx.x; v < vectors; v += kThreads) to[v] = row[v];
    if (threadIdx.x == 0) masks[place] |= 1u << e;
    if (threadIdx.x == 0) control(owner)->gates[set][token][rank][e] = args.gates[i];
  }
  __syncthreads();
  for (int place = threadIdx.x; place < world * tokens; place += kThreads) {
    const int token = place % tokens;
    if (token % kBlocks != block) continue;
    control(place / tokens)->masks[set][token][rank] = masks[place];
  }
  __syncthreads();
  if (threadIdx.x < world) {
    StoreReleaseSys(&control(threadIdx.x)->sent[block][rank], call);
    WaitAcquireSys(&mine->sent[block][threadIdx.x], call);
  }
  __syncthreads();
  for (int token = block; token < tokens; token += kBlocks) {
    for (int v = threadIdx.x; v < vectors; v += kThreads) {
      float sum[8] = {};
      for (int g = 0; g < world * per; ++g) {
        const int source = g / per, e = g % per;
        if ((mine->masks[set][token][source] >> e & 1) == 0) continue;
        const auto* from =
            reinterpret_cast<const Pack<__nv_bfloat16>*>(slot(rank, token, source, e));
        const Pack<__nv_bfloat16> row = from[v];
        const float gate = mine->gates[set][token][source][e];
        for (int j = 0; j < 8; ++j) sum[j] = fmaf(gate, row[j], sum[j]);
      }
      float4* out = reinterpret_cast<float4*>(args.out) + (token * vectors + v) * 2;
      out[0] = {sum[0], sum[1], sum[2], sum[3]};
      out[1] = {sum[4], sum[5], sum[6], sum[7]};
    }
  }
  if (threadIdx.x == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Combine<<<kBlocks, kThreads, 0, stream>>>(args);
}
