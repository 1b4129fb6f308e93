// Everything is pushed into slots of the members' symmetric memory, which is open at any time: own
// tokens at once, and shares of answers as soon as the numbers of rows are known, since these say
// where each member's rows begin. Numbers of rows travel with the number of the call in one word.
// Block b of every rank has the same vectors of each slot and needs to hear of the blocks b only;
// then it copies tokens to `gathered` and adds up shares.
//
// Two sets of slots take turns. A member writes into the set of call k again in call k + 2, after
// it has heard of this rank in call k + 1; this rank told of that after it had read all of call k.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 128, kMaxBlocks = 32;

struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by member: the last call whose vectors are here
  std::uint64_t rows[2][kMaxRanks];              // by member: call, rows
};

__global__ void __launch_bounds__(kThreads) AgRs(Args args) {
  __shared__ int counts[kMaxRanks];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int group = static_cast<int>(args.group), most = static_cast<int>(args.most);
  const int quads = static_cast<int>(args.quads), slot = most * quads, rows = args.rows[0];
  const int first = args.rank / group * group, me = args.rank - first;
  const int size = min(group, args.world - first);
  const std::int64_t set = sizeof(Control) + sizeof(float4) * (call % 2 * 2 * group * slot);
  const float4* x = reinterpret_cast<const float4*>(args.x);
  const float4* y = reinterpret_cast<const float4*>(args.y);
  const int begin = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  // Slots at a member: tokens by source, then shares by source.
  const auto slots = [&](int member) {
    return reinterpret_cast<float4*>(args.scratch_peers[first + member] + set);
  };

  const bool talks = threadIdx.x < size;  // one thread per member
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[talks ? first + threadIdx.x : 0]);
  if (talks && blockIdx.x == 0) {
    const std::uint64_t word = std::uint64_t{call} << 32 | static_cast<std::uint32_t>(rows);
    StoreRelaxedSys(&peer->rows[call % 2][me], word);
  }
  for (int i = begin; i < rows * quads; i += stride) {
    const float4 v = x[i];
    for (int step = 1; step < size; ++step) slots((me + step) % size)[me * slot + i] = v;
  }
  if (threadIdx.x < kMaxRanks) counts[threadIdx.x] = 0;
  if (talks) {
    std::uint64_t word;
    do {
      word = LoadRelaxedSys(&mine->rows[call % 2][threadIdx.x]);
    } while (word >> 32 != call);  //@count
    counts[threadIdx.x] = static_cast<int>(word);
    if (blockIdx.x == 0) args.counts[threadIdx.x] = static_cast<int>(word);
  }
  __syncthreads();  //@heard
  int offset[kMaxRanks + 1] = {};
#pragma unroll
  for (int s = 0; s < kMaxRanks; ++s) offset[s + 1] = offset[s] + counts[s];
  for (int i = begin; i < slot; i += stride) {
    float4 v[kMaxRanks];
#pragma unroll
    for (int s = 0; s < kMaxRanks; ++s) {  // all on their way before the first is needed
      if (i < counts[s] * quads) v[s] = y[offset[s] * quads + i];
    }
#pragma unroll
    for (int s = 0; s < kMaxRanks; ++s) {
      if (i < counts[s] * quads && s != me) slots(s)[(group + me) * slot + i] = v[s];
    }
  }
  __syncthreads();  //@sent
  if (talks) {
    StoreReleaseSys(&peer->arrived[blockIdx.x][me], call);          //@tell
    WaitAcquireSys(&mine->arrived[blockIdx.x][threadIdx.x], call);  //@wait
  }
  __syncthreads();  //@arrived

  const float4* here = slots(me);
  float4* gathered = reinterpret_cast<float4*>(args.gathered);
  for (int i = begin; i < slot; i += stride) {
    float4 tokens[kMaxRanks], shares[kMaxRanks];
    const bool mine_too = i < rows * quads;
#pragma unroll
    for (int s = 0; s < kMaxRanks; ++s) {
      if (i < counts[s] * quads) tokens[s] = s == me ? x[i] : here[s * slot + i];
      if (!mine_too || s >= size) continue;
      shares[s] = s == me ? y[offset[s] * quads + i] : here[(group + s) * slot + i];
    }
    float4 sum = {};
#pragma unroll
    for (int s = 0; s < kMaxRanks; ++s) {
      if (i < counts[s] * quads) gathered[offset[s] * quads + i] = tokens[s];
      if (!mine_too || s >= size) continue;
      sum = {sum.x + shares[s].x, sum.y + shares[s].y, sum.z + shares[s].z, sum.w + shares[s].w};
    }
    if (mine_too) reinterpret_cast<float4*>(args.out)[i] = sum;
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.most * args.quads + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  AgRs<<<blocks, kThreads, 0, stream>>>(args);
}
