// One block: the exponentials stay in shared memory, and what costs time are the three exchanges.
// Eight lanes have a prototype: together they add it up over the own samples, each sends the sum to
// one peer and waits for that peer's, and together they add up those. Sums travel as words that
// also hold the number of the call: who finds the number has the sum.
//
// Each round has words of its own. A rank overwrites those of the call before when it has words of
// a later exchange from every peer, and who has sent these had read the words of that round.
#include <allranks/flags.h>

constexpr int kRounds = 3, kMaxSamples = 64, kMaxProtos = 128;
constexpr int kStride = kMaxProtos + 4;  // so that eight samples of four prototypes fill all banks
constexpr int kWords = 256;              // where words begin; before: the counter of calls

__device__ std::uint64_t Look(const std::uint64_t* from) { return allranks::LoadRelaxedSys(from); }

__device__ float Receive(const std::uint64_t* from, std::uint32_t call) {
  std::uint64_t word = Look(from);
  while (word >> 32 != call) word = Look(from);  //@again
  return __uint_as_float(static_cast<std::uint32_t>(word));
}

// Over the eight lanes of a prototype.
__device__ float SumOfEight(float x) {
  for (int d = 4; d > 0; d /= 2) x += __shfl_xor_sync(0xffu << (threadIdx.x & 24), x, d);
  return x;
}

__global__ void __launch_bounds__(kMaxRanks* kMaxProtos) Sinkhorn(Args args) {
  __shared__ float e[kMaxSamples * kStride], u[kMaxProtos], v[kMaxSamples];
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = *calls + 1;  //@epoch
  const int samples = static_cast<int>(args.samples), protos = static_cast<int>(args.protos);
  const int thread = threadIdx.x, threads = blockDim.x, lane = thread % 32;
  const int j = thread / kMaxRanks, peer = thread % kMaxRanks;

  for (int i = thread; i < samples * protos; i += threads) {
    e[i / protos * kStride + i % protos] = expf(8 * args.scores[i]);
  }
  for (int i = thread; i < samples; i += threads) v[i] = 1;
  __syncthreads();  //@loaded
  for (int round = 0; round < kRounds; ++round) {
    const int set = round * kMaxRanks;
    if (j < protos) {
      float sum = 0;
#pragma unroll 4
      for (int i = peer; i < samples; i += kMaxRanks) sum += e[i * kStride + j] * v[i];
      sum = SumOfEight(sum);
      if (peer < args.world) {
        const std::uint64_t word = static_cast<std::uint64_t>(call) << 32 | __float_as_uint(sum);
        std::uint64_t* to = reinterpret_cast<std::uint64_t*>(args.scratch_peers[peer] + kWords);
        to += (set + args.rank) * protos + j;
        allranks::StoreRelaxedSys(to, word);  //@send
        const std::uint64_t* words = reinterpret_cast<std::uint64_t*>(args.scratch + kWords);
        sum = Receive(words + (set + peer) * protos + j, call);
      }
      sum = SumOfEight(peer < args.world ? sum : 0);  //@ranks
      if (peer == 0) u[j] = 1 / sum;
    }
    __syncthreads();  //@columns
    for (int i = thread / 32; i < samples; i += threads / 32) {
      float sum = 0;
      for (int k = lane; k < protos; k += 32) sum += e[i * kStride + k] * u[k];
      for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
      if (lane == 0) v[i] = 1 / sum;
    }
    __syncthreads();  //@rows
  }
  for (int i = thread; i < samples * protos; i += threads) {
    args.q[i] = e[i / protos * kStride + i % protos] * u[i % protos] * v[i / protos];
  }
  if (thread == 0) *calls = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int warps = static_cast<int>((kMaxRanks * args.protos + 31) / 32);
  Sinkhorn<<<1, 32 * warps, 0, stream>>>(args);
}
