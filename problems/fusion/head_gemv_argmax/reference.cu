// A candidate is a key of 64 bits whose order is that of logits, and for equal ones the opposite of
// words; so the largest key wins. A warp has every n-th word, for four rows at a time. Every block
// sends its best key of each row to all ranks, in a packet of two words that also hold the number
// of the call: who finds the number has that half of the key. Then block i of every rank has row i,
// and takes the largest key of all blocks of all ranks.
//
// Packets are in two sets, used in turn. A rank leaves call k when it has packets of call k of all
// blocks of all ranks, so nobody reads those of call k - 1 when call k + 1 overwrites them.
#include <allranks/numbers.h>

constexpr int kMaxBlocks = 32, kThreads = 128, kWarps = kThreads / 32, kRows = 4;
constexpr int kPackets = 256;  // where they begin; before: a counter of calls per block
using Vector = allranks::Pack<__half>;

struct alignas(16) Packet {
  std::uint64_t high, low;  // the number of the call in the upper half, half a key in the lower one
};

__device__ void Send(Packet* to, Packet p) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(p.high), "l"(p.low)
               : "memory");  //@send
}

__device__ Packet Look(const Packet* packet) {
  Packet p;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(p.high), "=l"(p.low)
               : "l"(packet)
               : "memory");  //@look
  return p;
}

__device__ bool Here(Packet p, std::uint32_t call) {
  return p.high >> 32 == call && p.low >> 32 == call;
}

__device__ std::uint64_t Key(float logit, std::uint32_t word) {
  const std::uint32_t bits = __float_as_uint(logit);
  const std::uint64_t ordered = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  return ordered << 32 | ~word;
}

__device__ std::uint64_t Larger(std::uint64_t a, std::uint64_t b) { return a > b ? a : b; }

__global__ void __launch_bounds__(kThreads) Decode(Args args) {
  __shared__ std::uint64_t of_warp[kWarps][kRows], best_of_warp[kWarps];
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;  //@epoch
  const int rows = static_cast<int>(args.rows), vectors = static_cast<int>(args.depth / 8);
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int warps = gridDim.x * kWarps, packets = args.world * gridDim.x;
  const std::int64_t set = (call & 1) * args.rows;
  const Vector* hidden = reinterpret_cast<const Vector*>(args.hidden);
  const Vector* weight = reinterpret_cast<const Vector*>(args.weight);

  for (int first = 0; first < rows; first += kRows) {
    std::uint64_t best[kRows] = {0};
    for (std::uint32_t w = blockIdx.x * kWarps + warp; w < args.vocab; w += warps) {
      float logit[kRows] = {0};
      for (int i = lane; i < vectors; i += 32) {
        const Vector a = weight[static_cast<std::int64_t>(w) * vectors + i];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          if (first + r >= rows) break;
          const Vector b = hidden[static_cast<std::int64_t>(first + r) * vectors + i];
          for (int e = 0; e < Vector::kCount; ++e) logit[r] += a[e] * b[e];
        }
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        for (int d = 16; d > 0; d /= 2) logit[r] += __shfl_xor_sync(~0u, logit[r], d);
        best[r] =
            Larger(best[r], Key(logit[r], static_cast<std::uint32_t>(args.rank * args.vocab) + w));
      }
    }
    __syncthreads();  // the keys of the rows before have been sent
    if (lane == 0) {
      for (int r = 0; r < kRows; ++r) of_warp[warp][r] = best[r];
    }
    __syncthreads();  //@found
    const int row = first + thread % kRows, peer = thread / kRows;
    if (row < rows && peer < args.world) {
      std::uint64_t key = of_warp[0][thread % kRows];
      for (int i = 1; i < kWarps; ++i) key = Larger(key, of_warp[i][thread % kRows]);
      const std::uint64_t epoch = std::uint64_t{call} << 32;
      Packet* to = reinterpret_cast<Packet*>(args.scratch_peers[peer] + kPackets);
      to += (set + row) * kMaxRanks * kMaxBlocks + args.rank * gridDim.x + blockIdx.x;
      Send(to, {epoch | key >> 32, epoch | static_cast<std::uint32_t>(key)});  //@tell
    }
  }
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const Packet* from = reinterpret_cast<Packet*>(args.scratch + kPackets);
    from += (set + row) * kMaxRanks * kMaxBlocks;
    std::uint64_t key = 0;
    for (int i = thread; i < packets; i += kThreads) {
      Packet p = Look(&from[i]);
      while (!Here(p, call)) p = Look(&from[i]);  //@again
      key = Larger(key, p.high << 32 | static_cast<std::uint32_t>(p.low));
    }
    for (int d = 16; d > 0; d /= 2) key = Larger(key, __shfl_xor_sync(~0u, key, d));
    __syncthreads();
    if (lane == 0) best_of_warp[warp] = key;
    __syncthreads();
    if (thread == 0) {
      for (std::uint64_t other : best_of_warp) key = Larger(key, other);
      const std::uint32_t ordered = static_cast<std::uint32_t>(key >> 32);
      args.word[row] = static_cast<std::int32_t>(~static_cast<std::uint32_t>(key));
      args.value[row] = __uint_as_float(ordered >> 31 != 0 ? ordered & 0x7fffffffu : ~ordered);
    }
  }
  if (thread == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.vocab + kWarps - 1) / kWarps;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  Decode<<<blocks, kThreads, 0, stream>>>(args);
}
