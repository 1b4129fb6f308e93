// Two kernels. The first leaves a rank's statistics in its own memory, in sets that take turns; the
// second meets the peers and reads theirs. A peer overwrites a set two calls later, after it has
// met this rank in between.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 256;

struct Control {
  std::uint32_t calls;
  std::uint32_t told[kMaxRanks];  // by peer: the last call whose statistics are ready
  float sums[2][kThreads];
  int counts[2][kThreads];
};

__global__ void Local(Args args) {
  __shared__ float sums[kThreads];
  __shared__ int counts[8];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t set = (mine->calls + 1) % 2;
  const int e = threadIdx.x % 8;
  if (threadIdx.x < 8) counts[threadIdx.x] = 0;
  __syncthreads();
  float sum = 0;
  for (std::int64_t t = threadIdx.x / 8; t < args.tokens; t += kThreads / 8) {
    sum += args.gates[(t * args.groups + blockIdx.x) * 8 + e];
  }
  sums[threadIdx.x] = sum;
  for (int i = threadIdx.x; i < args.tokens * args.topk; i += kThreads) {
    if (args.ids[i] / 8 == blockIdx.x) atomicAdd(&counts[args.ids[i] % 8], 1);
  }
  __syncthreads();
  if (threadIdx.x >= 8) return;
  for (int i = e + 8; i < kThreads; i += 8) sum += sums[i];
  mine->sums[set][blockIdx.x * 8 + e] = sum;
  mine->counts[set][blockIdx.x * 8 + e] = counts[e];
}

__global__ void Global(Args args) {
  __shared__ float terms[kThreads];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  const int e = threadIdx.x, experts = static_cast<int>(8 * args.groups);
  if (e < args.world) {
    StoreReleaseSys(&reinterpret_cast<Control*>(args.scratch_peers[e])->told[args.rank], call);
    WaitAcquireSys(&mine->told[e], call);
  }
  __syncthreads();
  if (e < experts) {
    float sum = 0;
    int count = 0;
    for (int r = 0; r < args.world; ++r) {
      const Control* peer = reinterpret_cast<const Control*>(args.scratch_peers[r]);
      sum += peer->sums[call % 2][e];
      count += peer->counts[call % 2][e];
    }
    args.importance[e] = sum;
    args.load[e] = count;
    terms[e] = count * sum;
  }
  __syncthreads();
  if (e > 0) return;
  float loss = 0;
  for (int i = 0; i < experts; ++i) loss += terms[i];
  const float all = static_cast<float>(args.world * args.tokens);
  args.loss[0] = loss * experts / (all * all * args.topk);
  mine->calls = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Local<<<static_cast<int>(args.groups), kThreads, 0, stream>>>(args);
  Global<<<1, kThreads, 0, stream>>>(args);
}
