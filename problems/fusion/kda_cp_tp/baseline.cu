// Kernel by kernel: all ranks meet, every rank runs the recurrence over the tokens of its column up
// to its own, fetched rank by rank, with a thread per row of the state; all meet, and every rank
// adds up the results of its row, element by element; all meet again.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 32, kThreads = 256, kMaxTokens = 64, kData = 256;

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
  __shared__ std::uint32_t k[kMaxTokens * kDim], v[kMaxTokens * kDim], decay[kMaxTokens * kDim];
  __shared__ std::uint32_t beta[kMaxTokens];
  const int head = blockIdx.x, i = threadIdx.x, tokens = static_cast<int>(args.tokens);
  const int tp = static_cast<int>(args.tp);
  std::uint32_t* summands = reinterpret_cast<std::uint32_t*>(args.scratch + kData);
  std::uint32_t s[kDim] = {};
  for (int source = args.rank % tp; source <= args.rank; source += tp) {
    for (int n = i; n < tokens * kDim; n += kThreads) {
      k[n] = args.k_peers[source][head * tokens * kDim + n];
      v[n] = args.v_peers[source][head * tokens * kDim + n];
      decay[n] = args.decay_peers[source][head * tokens * kDim + n];
    }
    if (i < tokens) beta[i] = args.beta_peers[source][head * tokens + i];
    __syncthreads();
    for (int t = 0; i < kDim && t < tokens; ++t) {
      const int n = head * tokens + t;
      const std::uint32_t* key = k + t * kDim;
      std::uint32_t read = 0, result = 0, summand = 0;
#pragma unroll
      for (int j = 0; j < kDim; ++j) read += (s[j] *= 2 * decay[t * kDim + j] + 1) * key[j];
      const std::uint32_t change = beta[t] * (v[t * kDim + i] - read);
#pragma unroll
      for (int j = 0; j < kDim; ++j) s[j] += change * key[j];
      if (source < args.rank) continue;
#pragma unroll
      for (int j = 0; j < kDim; ++j) result += s[j] * args.q[n * kDim + j];
      for (int j = 0; j < kDim; ++j) {
        summand += __shfl_sync(~0u, result, j) * args.w[(head * kDim + j) * kDim + i];
      }
      summands[n * kDim + i] = summand;
    }
    __syncthreads();
  }
  if (i >= kDim) return;
#pragma unroll
  for (int j = 0; j < kDim; ++j) args.state[(head * kDim + i) * kDim + j] = s[j];
}

__global__ void Add(Args args) {
  const int first = args.rank - args.rank % static_cast<int>(args.tp), all = args.tokens * kDim;
  for (int i = threadIdx.x; i < all; i += blockDim.x) {
    std::uint32_t sum = 0;
    for (int r = first; r < args.world && r < first + args.tp; ++r) {
      const auto* summands = reinterpret_cast<const std::uint32_t*>(args.scratch_peers[r] + kData);
      for (int h = 0; h < args.heads; ++h) sum += summands[h * all + i];
    }
    args.out[i] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  DeltaRule<<<args.heads, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Add<<<1, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
