#include <allranks/flags.h>

// Transforms of lengths like these would need two exchanges and a dozen barriers. So the sums are
// made as they stand, after a single exchange: a block has four channels, pushes its part of x to
// all later ranks, takes that of all earlier ones, and has the filter in shared memory. A thread
// has four rows of a channel and a share of the sequence, of which it takes four positions at a
// time: these need seven taps, of which three are still there.
//
// Each number travels in a word of 64 bits beside the number of the call. Words exist twice, for
// odd and even calls. Nothing comes back from later ranks that would hold up an early one. So who
// has taken the words of a call says so, and words of call k + 2 wait for that of call k.

using namespace allranks;

constexpr int kThreads = 512, kSlice = 4, kMaxRows = 64, kMaxBlocks = 64, kBatch = 4;
constexpr int kPitch = 9;        // of taps in shared memory: four rows apart, other banks
constexpr int kFuture = 72;      // taps before the first, which are zero
constexpr int kWords = 1 << 12;  // bytes before the words

struct Control {
  std::uint32_t calls[kMaxBlocks];             // that this block has completed
  std::uint32_t taken[kMaxBlocks][kMaxRanks];  // by rank: the last call whose words it has
};

__global__ void __launch_bounds__(kThreads) Convolve(Args args) {
  __shared__ float x[(kMaxRanks * kMaxRows + 4) * kSlice], sums[4 * kThreads];
  __shared__ float taps[(kFuture + kMaxRanks * kMaxRows + 4) * kPitch];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int rank = args.rank, world = args.world, rows = args.rows, channels = args.channels;
  const int size = rows * kSlice, before = rank * size, all = before + size, t = threadIdx.x;
  const int first = blockIdx.x * kSlice;
  const auto Place = [&](int i) { return i / kSlice * channels + first + i % kSlice; };
  const auto Words = [&](int at) {  // the sequence, as rank `at` gets it
    return reinterpret_cast<std::uint64_t*>(args.scratch_peers[at] + kWords) +
           (call % 2 * gridDim.x + blockIdx.x) * world * size;
  };

  const float own = t < size ? args.x[Place(t)] : 0, gate = t < size ? args.gate[Place(t)] : 0;
  if (t > rank && t < world) WaitRelaxedSys(&mine->taken[blockIdx.x][t], call - 2);  //@room
  __syncthreads();
  if (t < size) {
    x[before + t] = own;
    const std::uint64_t word = std::uint64_t{call} << 32 | __float_as_uint(own);
    for (int to = rank + 1; to < world; ++to) {
      StoreRelaxedSys(Words(to) + before + t, word);  //@put
    }
  }
  for (int i = t; i < all; i += kThreads) {
    taps[(kFuture + i / kSlice) * kPitch + i % kSlice] = args.w[Place(i)];
  }
  for (int i = t; i < kFuture * kPitch; i += kThreads) taps[i] = 0;
  if (t < 4 * kPitch) taps[(kFuture + all / kSlice) * kPitch + t] = 0;
  if (t < 4 * kSlice) x[all + t] = 0;

  const std::uint64_t* from = Words(rank);
  if (t < before) {
    std::uint64_t word[kBatch];
    bool missing;
    do {
      missing = false;
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {  // all on their way before the first is needed
        word[k] = LoadRelaxedSys(from + min(t + k * kThreads, before - 1));  //@look
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) missing |= word[k] >> 32 != call;
    } while (missing);  //@wait
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const float value = __uint_as_float(static_cast<std::uint32_t>(word[k]));
      if (t + k * kThreads < before) x[t + k * kThreads] = value;
    }
  }
  __syncthreads();  //@received
  if (t < rank) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t]);
    StoreRelaxedSys(&peer->taken[blockIdx.x][rank], call);  //@tell
  }

  const int units = (rows + 3) / 4 * kSlice, shares = kThreads / units;
  const int unit = t % units, share = t / units, c = unit % kSlice;
  const int groups = (all / kSlice + 3) / 4;  // of four positions
  if (share < shares) {
    int s = share * groups / shares * 4;
    const int end = (share + 1) * groups / shares * 4;
    const float* tap = taps + (kFuture + rank * rows + unit / kSlice * 4 - s) * kPitch + c;
    float sum[4] = {}, v[4], a[7] = {0, 0, 0, 0, tap[kPitch], tap[2 * kPitch], tap[3 * kPitch]};
    for (; s < end; s += 4, tap -= 4 * kPitch) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        v[k] = x[(s + k) * kSlice + c];
        a[k] = tap[(k - 3) * kPitch];
      }
#pragma unroll
      for (int k = 0; k < 16; ++k) sum[k / 4] += a[k / 4 - k % 4 + 3] * v[k % 4];
#pragma unroll
      for (int k = 0; k < 3; ++k) a[k + 4] = a[k];  //@pass_on
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[(share * 4 + k) * units + unit] = sum[k];
  }
  __syncthreads();  //@summed
  if (t < size) {
    const int row = t / kSlice;
    float sum = 0;
    for (int s = 0; s < shares; ++s) sum += sums[(s * 4 + row % 4) * units + row / 4 * kSlice + c];
    args.y[Place(t)] = sum * gate;
  }
  if (t == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Convolve<<<args.channels / kSlice, kThreads, 0, stream>>>(args);
}
