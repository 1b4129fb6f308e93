// Blocks of a rank find its best key of a row by atomics in its own memory; the last block to come
// sends the keys to all peers and tells them by one flag each. There are three sets of keys in
// turn, since the set of the call before is cleared for the one after the next.
#include <allranks/flags.h>
#include <allranks/numbers.h>

constexpr int kBlocks = 16, kThreads = 128, kKeys = 512;
using Vector = allranks::Pack<__half>;

struct Control {
  std::uint32_t calls;
  std::uint32_t came;             // blocks, over all calls
  std::uint32_t told[kMaxRanks];  // by peer: the last call whose keys are here
};

// The key of row `row` that rank `from` has found, at rank `at`. Its own keys are also gathered
// here.
__device__ unsigned long long* Key(const Args& args, int at, std::uint32_t call, std::int64_t row,
                                   int from) {
  unsigned long long* keys = reinterpret_cast<unsigned long long*>(args.scratch_peers[at] + kKeys);
  return keys + (call % 3 * args.rows + row) * kMaxRanks + from;
}

__global__ void __launch_bounds__(kThreads) Decode(Args args) {
  __shared__ bool last;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  const int lane = threadIdx.x % 32, vectors = static_cast<int>(args.depth / 8);
  const Vector* weight = reinterpret_cast<const Vector*>(args.weight);
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const Vector* hidden = reinterpret_cast<const Vector*>(args.hidden) + row * vectors;
    unsigned long long best = 0;
    for (std::uint32_t w = (blockIdx.x * kThreads + threadIdx.x) / 32; w < args.vocab;
         w += kBlocks * kThreads / 32) {
      float logit = 0;
      for (int i = lane; i < vectors; i += 32) {
        const Vector a = weight[static_cast<std::int64_t>(w) * vectors + i], b = hidden[i];
        for (int e = 0; e < Vector::kCount; ++e) logit += a[e] * b[e];
      }
      for (int d = 16; d > 0; d /= 2) logit += __shfl_xor_sync(~0u, logit, d);
      // Logits are integers: they become positive numbers of the same order.
      const auto ordered = static_cast<std::uint32_t>(static_cast<int>(logit) + (1 << 30));
      const auto word = static_cast<std::uint32_t>(args.rank * args.vocab + w);
      const unsigned long long key = static_cast<unsigned long long>(ordered) << 32 | ~word;
      best = key > best ? key : best;
    }
    if (lane == 0) atomicMax(Key(args, args.rank, call, row, args.rank), best);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    last = allranks::FetchAddAcqRelGpu(&mine->came, 1u) == call * kBlocks - 1;
  }
  __syncthreads();
  if (!last) return;
  for (std::int64_t i = threadIdx.x; i < args.rows * args.world; i += kThreads) {
    const int peer = static_cast<int>(i % args.world);
    const unsigned long long key = *Key(args, args.rank, call, i / args.world, args.rank);
    if (peer != args.rank) *Key(args, peer, call, i / args.world, args.rank) = key;
  }
  for (std::int64_t row = threadIdx.x; row < args.rows; row += kThreads) {
    *Key(args, args.rank, call + 2, row, args.rank) = 0;
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->told[args.rank], call);
    allranks::WaitAcquireSys(&mine->told[threadIdx.x], call);
  }
  __syncthreads();
  for (std::int64_t row = threadIdx.x; row < args.rows; row += kThreads) {
    unsigned long long best = 0;
    for (int r = 0; r < args.world; ++r) {
      const unsigned long long key = *Key(args, args.rank, call, row, r);
      best = key > best ? key : best;
    }
    args.word[row] = static_cast<std::int32_t>(~static_cast<std::uint32_t>(best));
    args.value[row] = static_cast<float>(static_cast<int>(best >> 32) - (1 << 30));
  }
  if (threadIdx.x == 0) mine->calls = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Decode<<<kBlocks, kThreads, 0, stream>>>(args);
}
