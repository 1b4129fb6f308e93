// A warp has a row, and no warp waits for another one of its device. Lane r sends the row's sum of
// squares to rank r, in a word that also holds the number of the call: who finds the number has the
// sum. A warp sends the sums of all its rows before it waits for any.
//
// Words are in two sets, used in turn. A rank leaves call k with words of call k of every peer, so
// no peer still reads words of call k - 1 when call k + 1 overwrites them.
#include <allranks/flags.h>

constexpr int kMaxBlocks = 64, kMaxWarps = 8;
constexpr int kWords = 4096;  // where words begin; before: a counter of calls per warp

// Over 2 * `from` neighbouring lanes; all of them get it.
__device__ float Sum(float x, int from) {
  for (int d = from; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
  return x;
}

__device__ std::uint64_t Look(const std::uint64_t* from) { return allranks::LoadRelaxedSys(from); }

__device__ float Receive(const std::uint64_t* from, std::uint32_t call) {
  std::uint64_t word = Look(from);
  while (word >> 32 != call) word = Look(from);  //@again
  return __uint_as_float(static_cast<std::uint32_t>(word));
}

__global__ void __launch_bounds__(32 * kMaxWarps) Norm(Args args) {
  const int lane = threadIdx.x % 32, vectors = static_cast<int>(args.hidden / 4);
  const int warp = threadIdx.x / 32 * gridDim.x + blockIdx.x, warps = blockDim.x / 32 * gridDim.x;
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch) + warp;
  const std::uint32_t call = *calls + 1;  //@epoch
  const std::int64_t set = (call & 1) * args.rows;
  const float4* x = reinterpret_cast<const float4*>(args.x);
  std::uint64_t* mine = reinterpret_cast<std::uint64_t*>(args.scratch + kWords);
  std::uint64_t* peer = nullptr;
  if (lane < args.world) {
    peer = reinterpret_cast<std::uint64_t*>(args.scratch_peers[lane] + kWords);
  }

  for (std::int64_t row = warp; row < args.rows; row += warps) {
    float squares = 0;
#pragma unroll 4
    for (int i = lane; i < vectors; i += 32) {
      const float4 v = x[row * vectors + i];
      squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    squares = Sum(squares, 16);
    const std::uint64_t word = static_cast<std::uint64_t>(call) << 32 | __float_as_uint(squares);
    if (peer != nullptr) {
      std::uint64_t* to = peer + (set + row) * kMaxRanks + args.rank;
      allranks::StoreRelaxedSys(to, word);  //@send
    }
  }
  for (std::int64_t row = warp; row < args.rows; row += warps) {  // receive
    const std::uint64_t* from = mine + (set + row) * kMaxRanks + lane;
    const float squares = lane < args.world ? Receive(from, call) : 0;
    const float total = __shfl_sync(~0u, Sum(squares, kMaxRanks / 2), 0);
    const float factor = rsqrtf(total / (args.world * args.hidden) + 1e-5f);
#pragma unroll 4
    for (int i = lane; i < vectors; i += 32) {
      const float4 w = reinterpret_cast<const float4*>(args.weight)[i], v = x[row * vectors + i];
      reinterpret_cast<float4*>(args.norm)[row * vectors + i] = {
          w.x * (v.x * factor), w.y * (v.y * factor), w.z * (v.z * factor), w.w * (v.w * factor)};
    }
  }
  __syncwarp();
  if (lane == 0) *calls = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t each = (args.rows + kMaxBlocks - 1) / kMaxBlocks;  // rows of a block
  const int blocks = static_cast<int>(args.rows < kMaxBlocks ? args.rows : kMaxBlocks);
  const int warps = static_cast<int>(each < kMaxWarps ? each : kMaxWarps);
  Norm<<<blocks, 32 * warps, 0, stream>>>(args);
}
