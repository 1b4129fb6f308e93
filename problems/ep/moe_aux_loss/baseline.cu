// One thread per expert adds up and counts, in a kernel of its own; ranks meet, every rank reads
// everyone's sums, and meets again before they may be overwritten.
#include <allranks/flags.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kThreads = 256;

struct Statistics {
  float sums[kThreads];
  int counts[kThreads];
};
__device__ Statistics* Of(const Args& args, int rank) {
  return reinterpret_cast<Statistics*>(args.scratch_peers[rank] + 256);
}

__global__ void Local(Args args) {
  const std::int64_t e = threadIdx.x, experts = 8 * args.groups;
  if (e >= experts) return;
  float sum = 0;
  int count = 0;
  for (std::int64_t t = 0; t < args.tokens; ++t) sum += args.gates[t * experts + e];
  for (std::int64_t i = 0; i < args.tokens * args.topk; ++i) count += args.ids[i] == e;
  Of(args, args.rank)->sums[e] = sum;
  Of(args, args.rank)->counts[e] = count;
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Global(Args args) {
  __shared__ float terms[kThreads];
  const int e = threadIdx.x, experts = static_cast<int>(8 * args.groups);
  if (e < experts) {
    float sum = 0;
    int count = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += Of(args, r)->sums[e];
      count += Of(args, r)->counts[e];
    }
    args.importance[e] = sum;
    args.load[e] = count;
    const float all = static_cast<float>(args.world * args.tokens);
    terms[e] = count / (all * args.topk) * (sum / all);
  }
  __syncthreads();
  if (e > 0) return;
  float loss = 0;
  for (int i = 0; i < experts; ++i) loss += terms[i];
  args.loss[0] = experts * loss;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Local<<<1, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Global<<<1, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
