// Kernel by kernel: all ranks meet, every rank runs the recurrence over the tokens of all ranks up
// to its own, fetched rank by rank, with a thread per row of the state, and all ranks meet again.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 32, kThreads = 256, kMaxTokens = 64;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void __launch_bounds__(kThreads) DeltaRule(Args args) {
  __shared__ std::uint32_t k[kMaxTokens * kDim], v[kMaxTokens * kDim], decay[kMaxTokens];
  __shared__ std::uint32_t beta[kMaxTokens];
  const int head = blockIdx.x, i = threadIdx.x, tokens = static_cast<int>(args.tokens);
  std::uint32_t s[kDim] = {};
  for (int source = 0; source <= args.rank; ++source) {
    for (int n = i; n < tokens * kDim; n += kThreads) {
      k[n] = args.k_peers[source][head * tokens * kDim + n];
      v[n] = args.v_peers[source][head * tokens * kDim + n];
    }
    if (i < tokens) decay[i] = args.decay_peers[source][head * tokens + i];
    if (i < tokens) beta[i] = args.beta_peers[source][head * tokens + i];
    __syncthreads();
    for (int t = 0; i < kDim && t < tokens; ++t) {
      const int n = head * tokens + t;
      const std::uint32_t* key = k + t * kDim;
      std::uint32_t read = 0, result = 0;
      const std::uint32_t factor = 2 * decay[t] + 1;
#pragma unroll
      for (int j = 0; j < kDim; ++j) read += s[j] * key[j];
      const std::uint32_t change = beta[t] * (v[t * kDim + i] - factor * read);
#pragma unroll
      for (int j = 0; j < kDim; ++j) s[j] = factor * s[j] + change * key[j];
      if (source < args.rank) continue;
#pragma unroll
      for (int j = 0; j < kDim; ++j) result += s[j] * args.q[n * kDim + j];
      args.out[n * kDim + i] = result;
    }
    __syncthreads();
  }
  if (i >= kDim) return;
#pragma unroll
  for (int j = 0; j < kDim; ++j) args.state[(head * kDim + i) * kDim + j] = s[j];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  DeltaRule<<<args.heads, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
