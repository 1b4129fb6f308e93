// A block of one warp has every n-th row. A word is a key of 30 bits: its logit, and below it how
// small rank and column are, so that keys sort as the statement says. The warp sorts the own words
// 128 at a time and keeps the 32 largest, one per lane, and sends them to all ranks. Eight such
// lists are joined in three steps: of two sorted lists, the larger of a[n] and b[31 - n] are the 32
// largest of both; five exchanges sort them. Then the smallest kept key alone says which of the own
// words are kept, so no list is needed for the gradient.
//
// A warp numbers its rows through all calls, and keys lie in slot number % 2, with two bits of
// number / 2 on top: who finds them has the key. A rank that sends row n + 1 has row n of all peers,
// which had read row n - 1 before they sent that: so nobody needs the slot any more. Numbers begin
// at 2: memory that is zero is no row's.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 64, kBest = 32, kSlots = 2, kWindow = 12, kOffset = 8193;
constexpr int kMaxVocab = 4096, kShift = 15, kTagShift = 30;
constexpr int kBegin = 4096;  // of the slots; before: a counter of rows per block

// Never 0, which stands for no word.
__device__ std::uint32_t Key(const Args& args, float logit, int j) {
  const int word = (kMaxRanks - 1 - args.rank) * kMaxVocab + (kMaxVocab - 1 - j);
  return static_cast<std::uint32_t>((static_cast<int>(logit) + kOffset) << kShift | word);
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
      keys[n] = j < vocab ? Key(args, args.logits[row * vocab + j], j) : 0;
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

__global__ void __launch_bounds__(32) Gradients(Args args) {
  const int lane = threadIdx.x, vocab = static_cast<int>(args.vocab);
  const int top = static_cast<int>(min(args.k, args.world * args.vocab));
  std::uint32_t* done = reinterpret_cast<std::uint32_t*>(args.scratch) + blockIdx.x;
  std::uint32_t number = *done + kSlots;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x, ++number) {
    const std::uint32_t tag = number / kSlots << kTagShift, word = tag | Own(args, row, lane);
    const std::uint32_t slot = (blockIdx.x * kSlots + number % kSlots) * kMaxRanks * kBest + lane;
    const auto slots = [&](int rank) {
      return reinterpret_cast<std::uint32_t*>(args.scratch_peers[rank] + kBegin) + slot;
    };
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world) break;
      std::uint32_t* to = slots(r) + args.rank * kBest;
      StoreRelaxedSys(to, word);  //@send
    }
    std::uint32_t keys[kMaxRanks] = {0, 0, 0, 0, 0, 0, 0, 0};
    const std::uint32_t* from = slots(args.rank);
    const int token = args.token[row] - args.rank * vocab, top_p = args.top_p[row];
    const float upstream = args.upstream[row];
    for (bool here = false; !here;) {
      here = true;
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (r >= args.world) break;
        keys[r] = LoadRelaxedSys(from + r * kBest) - tag;
        here = here && keys[r] >> kTagShift == 0;  //@again
      }
    }
    __syncwarp();
    const std::uint32_t key = Join(keys, lane);
    const int x = static_cast<int>(key >> kShift) - kOffset, most = __shfl_sync(~0u, x, 0);
    const bool counts = lane < top && x >= most - kWindow;
    const float weight = counts ? __int_as_float((127 + x - most) << 23) : 0;  // 2^(x - most)
    float mass = weight;  // of this and the words before
    for (int d = 1; d < 32; d *= 2) mass += __shfl_up_sync(~0u, mass, d) * (lane >= d);
    const float total = __shfl_sync(~0u, mass, 31);
    const bool keep = counts && 8 * (mass - weight) <= top_p * total;
    const int kept = __popc(__ballot_sync(~0u, keep));
    const float inverse = 1 / __shfl_sync(~0u, mass, kept - 1);
    const std::uint32_t threshold = __shfl_sync(~0u, key, kept - 1);
#pragma unroll 4
    for (int j = lane; j < vocab; j += 32) {
      const float logit = args.logits[row * vocab + j];
      const std::uint32_t own = Key(args, logit, j);
      const int exponent = 127 + static_cast<int>(logit) - most;
      const float p = __int_as_float(exponent << 23) * inverse;
      args.grad[row * vocab + j] = own >= threshold ? upstream * ((j == token ? 1 : 0) - p) : 0;
    }
  }
  if (lane == 0) *done = number - kSlots;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = static_cast<int>(args.rows < kMaxBlocks ? args.rows : kMaxBlocks);
  Gradients<<<blocks, 32, 0, stream>>>(args);
}
