// Every block adds up its part of the tokens and sends its seven sums to all ranks, as words that
// also hold the number of the call: who finds the number has the sum. Every block of every rank
// waits for the words of all blocks of all ranks, so no block waits for another one of its device
// first. Warp j has sum j.
//
// Words are in two sets, used in turn. A rank leaves call k with words of call k of all blocks of
// all ranks, so nobody reads words of call k - 1 any more when call k + 1 overwrites them.
#include <allranks/flags.h>

constexpr int kMaxBlocks = 8, kThreads = 256, kWarps = kThreads / 32, kSums = 7;
constexpr int kSenders = kMaxRanks * kMaxBlocks;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint64_t words[2 * kSenders][8];  // by set and sender: one for each sum
};

struct Sums {
  float of[kSums] = {0, 0, 0, 0, 0, 0, 0};

  __device__ void Add(float logp, float old, float advantage, int mask) {
    if (mask == 0) return;
    const float d = logp - old, r = expf(d);
    const float terms[kSums] = {1, -r * advantage, r, r * r, d, r - 1 - d, advantage};
    for (int j = 0; j < kSums; ++j) of[j] += terms[j];
  }
};

__device__ float WarpSum(float x) {
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
  return x;
}

__device__ std::uint64_t Look(const std::uint64_t* from) { return allranks::LoadRelaxedSys(from); }

__device__ float Gradient(float logp, float old, float advantage, int mask, float inverse) {
  return mask == 0 ? 0 : -expf(logp - old) * advantage * inverse;
}

__global__ void __launch_bounds__(kThreads) PolicyLoss(Args args) {
  __shared__ float of_warp[kWarps][kSums], total[kSums];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int n = static_cast<int>(args.n), vectors = n / 4;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, set = (call & 1) * kSenders;
  const float4* logp = reinterpret_cast<const float4*>(args.logp);
  const float4* old_logp = reinterpret_cast<const float4*>(args.old_logp);
  const float4* advantage = reinterpret_cast<const float4*>(args.advantage);
  const int4* mask = reinterpret_cast<const int4*>(args.mask);

  Sums own;
  for (int i = first; i < vectors; i += stride) {
    const float4 p = logp[i], o = old_logp[i], a = advantage[i];
    const int4 m = mask[i];
    own.Add(p.x, o.x, a.x, m.x);
    own.Add(p.y, o.y, a.y, m.y);
    own.Add(p.z, o.z, a.z, m.z);
    own.Add(p.w, o.w, a.w, m.w);
  }
  const int last = 4 * vectors + first;  // of the up to three tokens behind the vectors
  if (last < n) {                        //@tail
    own.Add(args.logp[last], args.old_logp[last], args.advantage[last], args.mask[last]);
  }
  for (int j = 0; j < kSums; ++j) {
    const float sum = WarpSum(own.of[j]);
    if (lane == 0) of_warp[warp][j] = sum;
  }
  __syncthreads();  //@gathered
  if (warp < kSums) {
    const float sum = WarpSum(lane < kWarps ? of_warp[lane][warp] : 0);
    if (lane < args.world) {
      const std::uint64_t word = static_cast<std::uint64_t>(call) << 32 | __float_as_uint(sum);
      Control* peer = reinterpret_cast<Control*>(args.scratch_peers[lane]);
      std::uint64_t* to = &peer->words[set + args.rank * gridDim.x + blockIdx.x][warp];
      allranks::StoreRelaxedSys(to, word);  //@send
    }
    float all = 0;
    for (int i = lane; i < args.world * gridDim.x; i += 32) {
      std::uint64_t word = Look(&mine->words[set + i][warp]);
      while (word >> 32 != call) word = Look(&mine->words[set + i][warp]);  //@again
      all += __uint_as_float(static_cast<std::uint32_t>(word));
    }
    all = WarpSum(all);
    if (lane == 0) total[warp] = all;
  }
  __syncthreads();  //@totals
  const float inverse = total[0] > 0 ? 1 / total[0] : 0;
  for (int i = first; i < vectors; i += stride) {
    const float4 p = logp[i], o = old_logp[i], a = advantage[i];
    const int4 m = mask[i];
    reinterpret_cast<float4*>(args.grad)[i] = {
        Gradient(p.x, o.x, a.x, m.x, inverse), Gradient(p.y, o.y, a.y, m.y, inverse),
        Gradient(p.z, o.z, a.z, m.z, inverse), Gradient(p.w, o.w, a.w, m.w, inverse)};
  }
  if (last < n) {
    args.grad[last] = Gradient(args.logp[last], args.old_logp[last], args.advantage[last],
                               args.mask[last], inverse);
  }
  if (first < kSums) {
    args.stats[first] = first == 0 ? total[0] : total[threadIdx.x] * inverse;
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.n + 4 * kThreads - 1) / (4 * kThreads));
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  PolicyLoss<<<blocks, kThreads, 0, stream>>>(args);
}
