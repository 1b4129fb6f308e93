// Words carry their own flags: a packet has two floats, each beside the number of the call, so that
// whoever finds the number has the float. A thread sends and receives the packets of its pairs of
// columns by itself. A block has whole rows, so the norm needs no other block.
//
// One shot for few rows: everybody sends everything to everybody. Two shots for more: rank
// row % world adds up a row and sends the sums.
//
// Packets are in two sets, used in turn. A rank enters call k + 1 after it has had, directly or in
// the owner's sums, packets of call k of every peer; so no peer still reads those of call k - 1.
#include <allranks/numbers.h>

constexpr int kMaxBlocks = 64, kMaxThreads = 512;
constexpr int kOneShot = 2048;  // floats up to which one shot is faster
constexpr float kEpsilon = 1e-5f;
constexpr int kPackets = 256;  // where they begin; before: a counter of calls per block

struct alignas(16) Packet {
  std::uint64_t x, y;  // the number of the call in the upper half, a float in the lower one
};

__device__ std::uint64_t Word(float x, std::uint32_t call) {
  return std::uint64_t{call} << 32 | __float_as_uint(x);
}

__device__ void Send(Packet* to, float2 v, std::uint32_t call) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(Word(v.x, call)),
               "l"(Word(v.y, call))
               : "memory");  //@send
}

__device__ Packet Look(const Packet* packet) {
  Packet p;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(p.x), "=l"(p.y)
               : "l"(packet)
               : "memory");  //@look
  return p;
}

__device__ bool Here(Packet p, std::uint32_t call) {
  return p.x >> 32 == call && p.y >> 32 == call;
}

__device__ float Value(std::uint64_t word) {
  return __uint_as_float(static_cast<std::uint32_t>(word));
}

__device__ float2 Receive(const Packet* packet, Packet p, std::uint32_t call) {
  while (!Here(p, call)) p = Look(packet);  //@again
  return {Value(p.x), Value(p.y)};
}

// The sum over all ranks of this rank's pair `own` and the peers' packets, in the order of ranks.
__device__ float2 Sum(const Args& args, const Packet* slots, std::int64_t all, float2 own,
                      std::uint32_t call) {
  Packet p[kMaxRanks];
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
    if (r < args.world && r != args.rank) p[r] = Look(&slots[r * all]);
  }
  float2 sum = {0, 0};
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {
    if (r >= args.world) break;
    const float2 v = r == args.rank ? own : Receive(&slots[r * all], p[r], call);
    sum = {sum.x + v.x, sum.y + v.y};
  }
  return sum;
}

// Over the threads of the block; every thread gets it.
__device__ float BlockSum(float x) {
  __shared__ float of_warp[kMaxThreads / 32];
  const int lane = threadIdx.x % 32;
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
  __syncthreads();  // the sums of the row before have been read
  if (lane == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();  //@squared
  x = lane < (blockDim.x + 31) / 32 ? of_warp[lane] : 0;
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
  return x;
}

__global__ void __launch_bounds__(kMaxThreads) ReduceNorm(Args args, bool one_shot) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;  //@epoch
  const int world = args.world, hidden = static_cast<int>(args.hidden), pairs = hidden / 2;
  const std::int64_t all = args.rows * pairs;
  Packet* set[kMaxRanks];
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {
    Packet* packets = reinterpret_cast<Packet*>(args.scratch_peers[r] + kPackets);
    set[r] = packets + (call & 1) * (world + 1) * all;
  }
  const Packet* mine = reinterpret_cast<Packet*>(args.scratch + kPackets);
  mine += set[0] - reinterpret_cast<Packet*>(args.scratch_peers[0] + kPackets);
  float2* stream = reinterpret_cast<float2*>(args.stream);

  for (int row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const int owner = row % world;
    float squares = 0;  // of this row
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
      const std::int64_t at = static_cast<std::int64_t>(row) * pairs + i;
      const std::int64_t sum_at = world * all + at;
      const float2 own = reinterpret_cast<const float2*>(args.in)[at];
      const float2 residual = reinterpret_cast<const float2*>(args.residual)[at];
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        const bool to = one_shot || r == owner;
        if (to && r < world && r != args.rank)
          Send(&set[r][args.rank * all + at], own, call);  //@inputs
      }
      float2 sum;
      if (one_shot || owner == args.rank) {
        sum = Sum(args, &mine[at], all, own, call);
#pragma unroll
        for (int r = 0; r < kMaxRanks; ++r) {
          if (!one_shot && r < world && r != args.rank) Send(&set[r][sum_at], sum, call);  //@sums
        }
      } else {
        sum = Receive(&mine[sum_at], Look(&mine[sum_at]), call);
      }
      const float2 h = {sum.x + residual.x, sum.y + residual.y};
      stream[at] = h;
      squares += h.x * h.x + h.y * h.y;
    }
    const float total = BlockSum(squares);
    const float factor = rsqrtf(total / hidden + kEpsilon);
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
      const std::int64_t at = static_cast<std::int64_t>(row) * pairs + i;
      const float2 w = reinterpret_cast<const float2*>(args.weight)[i], h = stream[at];
      reinterpret_cast<float2*>(args.norm)[at] = {w.x * (h.x * factor), w.y * (h.y * factor)};
    }
  }
  if (threadIdx.x == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int pairs = static_cast<int>(args.hidden / 2), rows = static_cast<int>(args.rows);
  const int threads = pairs < kMaxThreads ? (pairs + 31) / 32 * 32 : kMaxThreads;
  const int blocks = rows < kMaxBlocks ? rows : kMaxBlocks;
  ReduceNorm<<<blocks, threads, 0, stream>>>(args, args.rows * args.hidden <= kOneShot);
}
