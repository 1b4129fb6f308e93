#include <allranks/tile_mma.h>

// A block has tiles of 32 columns. It sends the rows of its tile that are tokens to all ranks at
// once, and adds up what all others send: one trip, as there is little to send. Each float travels
// in a 64-bit word with the number of the call: who sees the number has the float, without a fence.
//
// Slots exist twice, by turns of calls. A rank sends for call k + 2 after it has the parts of all
// ranks for call k + 1, and who has sent one of them has ended its call k.
constexpr int kMaxBlocks = 32, kThreads = allranks::kTileThreads;
constexpr int kPairs = allranks::kTileCols / 2;  // of a row of a tile

struct Board {
  std::uint32_t calls[kMaxBlocks];  // own: that each block has completed
};

// At rank `at`: the part of rank r of the tile `col`.
__device__ ulonglong2* Slot(const Args& args, int at, int r, std::int64_t col, std::uint32_t call) {
  const std::int64_t tile = (call % 2 * args.world + r) * args.cols + col;
  return reinterpret_cast<ulonglong2*>(args.scratch_peers[at] + 8192) + tile * args.tokens * kPairs;
}

__device__ void Send(ulonglong2* to, float2 v, std::uint32_t call) {
  const std::uint64_t number = std::uint64_t{call} << 32;
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to),
               "l"(number | __float_as_uint(v.x)), "l"(number | __float_as_uint(v.y))
               : "memory");  //@store
}

__device__ ulonglong2 Look(const ulonglong2* from) {
  ulonglong2 v;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(v.x), "=l"(v.y)
               : "l"(from)
               : "memory");  //@look
  return v;
}

// Adds one pair of all other ranks. All are on their way before the first is needed.
__device__ float2 Receive(const Args& args, std::int64_t col, int n, std::uint32_t call,
                          float2 sum) {
  ulonglong2 words[kMaxRanks];
  bool missing;
  do {
    missing = false;
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world || r == args.rank) continue;
      words[r] = Look(Slot(args, args.rank, r, col, call) + n);
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world || r == args.rank) continue;
      missing |= words[r].x >> 32 != call || words[r].y >> 32 != call;
    }
  } while (missing);  //@wait
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {
    if (r >= args.world || r == args.rank) continue;
    sum.x += __uint_as_float(static_cast<std::uint32_t>(words[r].x));
    sum.y += __uint_as_float(static_cast<std::uint32_t>(words[r].y));
  }
  return sum;
}

__global__ void __launch_bounds__(kThreads) MultiplyReduce(Args args) {
  __shared__ allranks::TileStage stage;
  __shared__ alignas(16) float tile[allranks::kTileRows * allranks::kTileCols];
  allranks::TileProduct product(stage);
  std::uint32_t* calls = &reinterpret_cast<Board*>(args.scratch)->calls[blockIdx.x];
  const std::uint32_t call = *calls + 1;
  const std::int64_t k = args.depth * allranks::kTileDepth;
  const auto* b = reinterpret_cast<const std::uint16_t*>(args.b);
  const float2* pairs = reinterpret_cast<const float2*>(tile);
  const int count = static_cast<int>(args.tokens) * kPairs;
  for (std::int64_t col = blockIdx.x; col < args.cols; col += gridDim.x) {
    product.Clear();  //@clear
    product.Add(args.a, k, b + col * allranks::kTileCols * k, k, k);
    product.Store(tile, allranks::kTileCols);
    __syncthreads();  //@stored
    for (int n = threadIdx.x; n < count; n += kThreads) {
      for (int step = 1; step < args.world; ++step) {
        const int to = (args.rank + step) % args.world;
        Send(Slot(args, to, args.rank, col, call) + n, pairs[n], call);  //@send
      }
    }
    for (int n = threadIdx.x; n < count; n += kThreads) {
      float2 sum = pairs[n];
      sum = Receive(args, col, n, call, sum);
      const std::int64_t row = n / kPairs;
      float2* out = reinterpret_cast<float2*>(args.c) + row * args.cols * kPairs + col * kPairs;
      out[n % kPairs] = sum;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) *calls = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = static_cast<int>(args.cols < kMaxBlocks ? args.cols : kMaxBlocks);
  MultiplyReduce<<<blocks, kThreads, 0, stream>>>(args);
}
