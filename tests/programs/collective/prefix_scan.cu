// An inclusive prefix sum over an array that lies in parts on all devices: each block scans its
// tile and looks back over the tiles before it, across devices. A tile's state is one 64-bit word
// (call and kind above, value below), so that value and state are read together.
//
// run 2.processes: | 2 processes
// run 3.threads: | 3 threads
// run 5.processes: | 5 processes
// run 8.threads: | 8 threads
#include "world.h"

namespace {

constexpr int kTile = 128, kTiles = 4, kPerRank = kTile * kTiles, kCalls = 4;
enum Kind : uint32_t { kSum = 1, kPrefix = 2 };  // of this tile alone; of all up to it

struct State {
  unsigned long long tile[kTiles];
};

uint32_t Input(int call, int i) { return (call + 1) * 2246822519u + i * 3266489917u; }

__device__ unsigned long long Load(const unsigned long long* p) {
  unsigned long long value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}
__device__ void Publish(unsigned long long* p, uint32_t call, Kind kind, uint32_t value) {
  const unsigned long long word = static_cast<unsigned long long>(call * 4 + kind) << 32 | value;
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(word) : "memory");
}

__global__ void Scan(Peers<State> states, Peers<Meeting<kTiles>> meeting, int rank, int ranks,
                     uint32_t call, const uint32_t* input, uint32_t* output) {
  __shared__ uint32_t warp_sums[kTile / 32], before_shared;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int i = blockIdx.x * kTile + threadIdx.x;
  uint32_t value = input[i];
  for (int step = 1; step < 32; step *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, value, step);
    if (lane >= step) value += other;
  }
  if (lane == 31) warp_sums[warp] = value;
  __syncthreads();
  for (int w = 0; w < warp; ++w) value += warp_sums[w];
  if (threadIdx.x == kTile - 1) {
    unsigned long long* mine = &states[rank]->tile[blockIdx.x];
    int tile = rank * kTiles + int(blockIdx.x);
    Publish(mine, call, tile == 0 ? kPrefix : kSum, value);
    uint32_t before = 0;
    while (tile > 0) {
      --tile;
      const unsigned long long* look = &states[tile / kTiles]->tile[tile % kTiles];
      unsigned long long word;
      do {
        word = Load(look);
      } while (word >> 34 != call);
      before += uint32_t(word);
      if (uint32_t(word >> 32) % 4 == kPrefix) break;
    }
    if (rank != 0 || blockIdx.x != 0) Publish(mine, call, kPrefix, before + value);
    before_shared = before;
  }
  __syncthreads();
  output[i] = value + before_shared;
  // States are used again in the next call: all tiles must have looked.
  Meet(meeting, rank, ranks, call);
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const auto states = world.Share<State>();
    const auto meeting = world.Share<Meeting<kTiles>>();
    std::vector<uint32_t> inputs;
    for (int k = 0; k < kCalls * kPerRank; ++k)
      inputs.push_back(Input(k / kPerRank, world.rank() * kPerRank + k % kPerRank));
    const uint32_t* input = world.Allocate(inputs);
    uint32_t* output = world.Allocate<uint32_t>(inputs.size());
    for (int call = 0; call < kCalls; ++call) {
      Scan<<<kTiles, kTile, 0, world.stream()>>>(states, meeting, world.rank(), world.ranks(),
                                                 call + 1, input + call * kPerRank,
                                                 output + call * kPerRank);
      CUDA_CHECK_LAUNCH();
    }
    const std::vector<uint32_t> got = world.Result(output, inputs.size());
    for (int call = 0; call < kCalls; ++call) {
      uint32_t sum = 0;
      for (int i = 0; i < (world.rank() + 1) * kPerRank; ++i) {
        sum += Input(call, i);
        const int at = i - world.rank() * kPerRank;
        if (at >= 0)
          REQUIRE(got[call * kPerRank + at] == sum, "rank %d, call %d, element %d: %u, expected %u",
                  world.rank(), call, i, got[call * kPerRank + at], sum);
      }
    }
  });
}
