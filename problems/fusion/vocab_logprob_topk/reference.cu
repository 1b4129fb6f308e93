// A block of one warp has a row, and waits for none of its device. A word is a key of 32 bits: its
// logit, and below it how small its number is, so that keys sort as the statement says. The warp
// sorts the own words 128 at a time and keeps the 32 largest: lane n has the n-th, and sends it to
// all ranks with the number of the call in the upper half: who finds the number has the key. Eight
// such lists, one per rank, are joined in three steps: of two sorted lists, the larger of a[n] and
// b[31 - n] are the 32 largest of both; five exchanges sort them.
//
// Words are in two sets, used in turn. A rank leaves call k with words of call k of every peer, so
// no peer still reads words of call k - 1 when call k + 1 overwrites them.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 64, kBest = 32, kWindow = 12, kShift = 15, kOffset = 8193;
constexpr int kBegin = 4096;  // of the words; before: a counter of calls per block
constexpr std::uint32_t kWordMask = (1u << kShift) - 1;

// Never 0, which stands for no word.
__device__ std::uint32_t Key(float logit, std::uint32_t word) {
  return static_cast<std::uint32_t>(static_cast<int>(logit) + kOffset) << kShift |
         (kWordMask - word);
}

// A step of a bitonic network, for the first `count` keys of each lane.
template <int kCount>
__device__ void Exchange(std::uint32_t (&keys)[kCount], int count, int distance, bool larger) {
#pragma unroll
  for (int n = 0; n < kCount && n < count; ++n) {
    const std::uint32_t other = __shfl_xor_sync(~0u, keys[n], distance);
    keys[n] = larger ? max(keys[n], other) : min(keys[n], other);
  }
}

// The 32 largest of all lists keys[n], each of them sorted, the largest in lane 0.
template <int kCount>
__device__ std::uint32_t Join(std::uint32_t (&keys)[kCount], int lane) {
#pragma unroll
  for (int half = kCount / 2; half > 0; half /= 2) {
#pragma unroll
    for (int n = 0; n < half; ++n) {
      keys[n] = max(keys[n], __shfl_sync(~0u, keys[n + half], 31 - lane));
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) Exchange(keys, half, d, (lane & d) == 0);
  }
  return keys[0];
}

// The largest of the own words.
__device__ std::uint32_t Own(const Args& args, std::int64_t row, int lane) {
  const int vocab = static_cast<int>(args.vocab);
  std::uint32_t best = 0;
  for (int first = 0; first < vocab; first += 128) {
    std::uint32_t keys[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int j = first + 32 * n + lane;
      keys[n] = j < vocab ? Key(args.logits[row * vocab + j], args.rank * vocab + j) : 0;
    }
#pragma unroll
    for (int size = 2; size <= 32; size *= 2) {
#pragma unroll
      for (int d = size / 2; d > 0; d /= 2) {
        Exchange(keys, 4, d, ((lane & d) == 0) == ((lane & size) == 0));
      }
    }
    std::uint32_t both[2] = {best, Join(keys, lane)};
    best = first == 0 ? both[1] : Join(both, lane);
  }
  return best;
}

__global__ void __launch_bounds__(32) LogProbs(Args args) {
  const int lane = threadIdx.x, all = static_cast<int>(args.world * args.vocab);
  const int top = static_cast<int>(min(args.k, static_cast<std::int64_t>(all)));
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch) + blockIdx.x;
  const std::uint32_t call = *calls + 1;  //@epoch
  const std::int64_t set = (call & 1) * args.rows;
  const auto words = [&](int rank, std::int64_t row) {
    return reinterpret_cast<std::uint64_t*>(args.scratch_peers[rank] + kBegin) +
           (set + row) * kMaxRanks * kBest;
  };

  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const std::uint64_t word = std::uint64_t{call} << 32 | Own(args, row, lane);
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world) break;
      std::uint64_t* to = words(r, row) + args.rank * kBest + lane;
      StoreRelaxedSys(to, word);  //@send
    }
  }
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    std::uint32_t keys[kMaxRanks] = {0, 0, 0, 0, 0, 0, 0, 0};
    const std::uint64_t* from = words(args.rank, row) + lane;
    const int token = args.token[row], top_p = args.top_p[row];  // before the wait
    for (bool here = false; !here;) {
      here = true;
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (r >= args.world) break;
        const std::uint64_t word = LoadRelaxedSys(from + r * kBest);
        here = here && word >> 32 == call;  //@again
        keys[r] = static_cast<std::uint32_t>(word);
      }
    }
    __syncwarp();
    const std::uint32_t key = Join(keys, lane), word = kWordMask - (key & kWordMask);
    const int x = static_cast<int>(key >> kShift) - kOffset, most = __shfl_sync(~0u, x, 0);
    const bool counts = lane < top && x >= most - kWindow;
    const float weight = counts ? __int_as_float((127 + x - most) << 23) : 0;  // 2^(x - most)
    float mass = weight;  // of this and the words before
    for (int d = 1; d < 32; d *= 2) mass += __shfl_up_sync(~0u, mass, d) * (lane >= d);
    const float total = __shfl_sync(~0u, mass, 31);
    const bool keep = counts && 8 * (mass - weight) <= top_p * total;
    const int kept = __popc(__ballot_sync(~0u, keep));
    const float lse = most + log2f(__shfl_sync(~0u, mass, kept - 1));
    const bool hit = keep && word == token, found = __any_sync(~0u, hit);
    if (hit || (!found && lane == 0)) args.logprob[row] = hit ? x - lse : -INFINITY;
    if (lane == 0) args.lse[row] = lse;
    if (lane == 0) args.kept[row] = kept;
  }
  if (lane == 0) *calls = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = static_cast<int>(args.rows < kMaxBlocks ? args.rows : kMaxBlocks);
  LogProbs<<<blocks, 32, 0, stream>>>(args);
}
