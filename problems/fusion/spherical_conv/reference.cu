#include <allranks/flags.h>

// A block has 32 elements of a rank's result, and the same ones for all ranks: warp w contracts
// what they take from here for rank w, sends it there, and waits for what rank w has sent. So
// every thread computes a number, sends one and receives one. Then the first warp adds up. All of
// x comes to shared memory while the first entries are on their way, as these say what to take.
//
// Each float travels in a word of 64 bits beside the number of the call: who sees the number has
// the float, without a fence. Slots exist twice, for odd and even calls. A rank sends for call
// k + 2 after it has words of all ranks for call k + 1, and who has sent one of them has ended its
// call k and has read its slots.

using namespace allranks;

constexpr int kTile = 32, kThreads = kTile * kMaxRanks, kSlots = 1024, kMaxSize = 2048;
constexpr int kBatch = 8;  // entries of a list, taken together

__global__ void __launch_bounds__(kThreads) Contract(Args args) {
  __shared__ float all[kMaxSize], parts[kMaxRanks][kTile];
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;  //@epoch
  const int rank = args.rank, world = args.world, lats = args.lats, lons = args.lons;
  const int size = args.channels * lats * lons, taps = args.taps;
  const int lane = threadIdx.x % kTile, peer = threadIdx.x / kTile, i = blockIdx.x * kTile + lane;
  const auto Slot = [&](int at, int from) {
    return reinterpret_cast<std::uint64_t*>(args.scratch_peers[at] + kSlots) +
           (call % 2 * world + from) * size + i;
  };

  const int m = i % lons, row = i / lons % lats, list = (peer * lats + row) * taps;
  const bool active = peer < world && i < size;
  int lat[kBatch], shift[kBatch];
  float value[kBatch], own[kMaxSize / kThreads];
  const auto Fetch = [&](int e) {  // entries e to e + 7, of which some may not exist
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const bool exists = active && e + k < taps;
      lat[k] = exists ? args.lat[list + e + k] : 0;
      shift[k] = exists ? args.shift[list + e + k] : 0;
      value[k] = exists ? args.value[list + e + k] : 0;
    }
  };
#pragma unroll
  for (int k = 0; k < kMaxSize / kThreads; ++k) {
    const int at = threadIdx.x + k * kThreads;
    own[k] = at < size ? args.x[at] : 0;
  }
  Fetch(0);
#pragma unroll
  for (int k = 0; k < kMaxSize / kThreads; ++k) all[threadIdx.x + k * kThreads] = own[k];
  __syncthreads();  //@staged

  if (active) {
    const float* x = all + i / (lats * lons) * lats * lons;
    float sum = 0;
    for (int e = 0; e < taps; e += kBatch) {
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        int lon = m + shift[k];
        if (lon >= lons) lon -= lons;  //@wrap
        sum += value[k] * x[lat[k] * lons + lon];
      }
      Fetch(e + kBatch);
    }
    if (peer != rank) {
      std::uint64_t word = std::uint64_t{call} << 32 | __float_as_uint(sum);
      StoreRelaxedSys(Slot(peer, rank), word);  //@put
      do {
        word = LoadRelaxedSys(Slot(rank, peer));  //@look
      } while (word >> 32 != call);               //@wait
      sum = __uint_as_float(static_cast<std::uint32_t>(word));
    }
    parts[peer][lane] = sum;
  }
  __syncthreads();  //@gathered
  if (threadIdx.x < kTile && i < size) {
    float sum = 0;
    for (int r = 0; r < world; ++r) sum += parts[r][lane];
    args.y[i] = sum;
  }
  if (threadIdx.x == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int size = args.channels * args.lats * args.lons;
  Contract<<<(size + kTile - 1) / kTile, kThreads, 0, stream>>>(args);
}
