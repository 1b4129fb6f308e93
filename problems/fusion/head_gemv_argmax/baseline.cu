// Kernel by kernel: the best word of the own shard, a meeting, the best of all shards, and a
// meeting before candidates are overwritten.
#include <allranks/flags.h>
#include <allranks/numbers.h>

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
struct Candidate {
  float value;
  std::int32_t word;
};
constexpr int kThreads = 128, kCandidates = 256;
using Vector = allranks::Pack<__half>;

__device__ void Take(Candidate& best, Candidate other) {
  const bool better = other.value > best.value;
  if (better || (other.value == best.value && other.word < best.word)) best = other;
}

// A block has a row, a thread every 128th word.
__global__ void Own(Args args) {
  __shared__ Candidate of_thread[kThreads];
  const Vector* weight = reinterpret_cast<const Vector*>(args.weight);
  const std::int64_t vectors = args.depth / Vector::kCount;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const Vector* hidden = reinterpret_cast<const Vector*>(args.hidden) + row * vectors;
    Candidate best = {-INFINITY, 0x7fffffff};
    for (std::int64_t v = threadIdx.x; v < args.vocab; v += kThreads) {
      float logit = 0;
      for (std::int64_t k = 0; k < vectors; ++k) {
        const Vector a = weight[v * vectors + k], b = hidden[k];
        for (int e = 0; e < Vector::kCount; ++e) logit += a[e] * b[e];
      }
      Take(best, {logit, static_cast<std::int32_t>(args.rank * args.vocab + v)});
    }
    of_thread[threadIdx.x] = best;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) Take(of_thread[threadIdx.x], of_thread[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) {
      reinterpret_cast<Candidate*>(args.scratch + kCandidates)[row] = of_thread[0];
    }
    __syncthreads();
  }
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->reached[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void All(Args args) {
  for (std::int64_t row = threadIdx.x; row < args.rows; row += kThreads) {
    Candidate best = {-INFINITY, 0x7fffffff};
    for (int r = 0; r < args.world; ++r) {
      Take(best, reinterpret_cast<const Candidate*>(args.scratch_peers[r] + kCandidates)[row]);
    }
    args.word[row] = best.word;
    args.value[row] = best.value;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Own<<<4, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  All<<<1, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
