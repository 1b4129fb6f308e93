// Words are found one after the other, as the largest that is left by a reduction over the warp:
// first those of the own shard, which a block pushes to all ranks, then those of all lists, of which
// lane r goes through that of rank r. A block has four rows at a time, a turn, and one flag for them.
// Two sets, used in turn: a rank that tells of turn t + 1 has read what was pushed in turn t, and
// nobody overwrites it before it has told so.
#include <allranks/flags.h>

constexpr int kMaxBlocks = 16, kRows = 4, kBest = 32, kBegin = 4096;  // blocks of one warp

struct Control {
  std::uint32_t turns[kMaxBlocks], told[kMaxBlocks][kMaxRanks];
};
using Lists = std::uint32_t[kMaxRanks][kBest];

__device__ int Logit(std::uint32_t key) { return static_cast<int>(key >> 15) - 8193; }
__device__ std::uint32_t Key(float logit, int word) {
  return static_cast<std::uint32_t>((static_cast<int>(logit) + 8193) << 15 | (32767 - word));
}

__global__ void Gradients(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int lane = threadIdx.x, block = blockIdx.x, vocab = static_cast<int>(args.vocab);
  const int begin = args.rank * vocab;
  std::uint32_t turn = mine->turns[block];
  const auto lists = [&](int rank, std::int64_t row) -> Lists& {
    const std::int64_t at = (block * 2 + turn % 2) * kRows + row % kRows;
    return reinterpret_cast<Lists*>(args.scratch_peers[rank] + kBegin)[at];
  };
  for (std::int64_t first = block * kRows; first < args.rows; first += gridDim.x * kRows) {
    const std::int64_t end = min(first + kRows, args.rows);
    ++turn;
    for (std::int64_t row = first; row < end; ++row) {
      std::uint32_t own = 0, last = ~0u;
      for (int n = 0; n < args.k && n < vocab; ++n) {
        std::uint32_t largest = 0;
        for (int j = lane; j < vocab; j += 32) {
          const std::uint32_t key = Key(args.logits[row * vocab + j], begin + j);
          if (key < last) largest = max(largest, key);
        }
        last = __reduce_max_sync(~0u, largest);
        if (n == lane) own = last;
      }
      for (int r = 0; r < args.world; ++r) lists(r, row)[args.rank][lane] = own;
    }
    __syncwarp();
    if (lane < args.world) {
      Control* peer = reinterpret_cast<Control*>(args.scratch_peers[lane]);
      allranks::StoreReleaseSys(&peer->told[block][args.rank], turn);
      allranks::WaitAcquireSys(&mine->told[block][lane], turn);
    }
    __syncwarp();
    for (std::int64_t row = first; row < end; ++row) {
      float masses[2] = {0, 0};  // of all that count, and of those kept
      std::uint32_t last = 0;
      int most = 0;
      for (int pass = 0; pass < 2; ++pass) {
        for (int n = 0, at = 0; n < args.k; ++n) {
          const bool more = lane < args.world && at < kBest;
          const std::uint32_t head = more ? lists(args.rank, row)[lane][at] : 0;
          const std::uint32_t key = __reduce_max_sync(~0u, head);
          if (n == 0) most = Logit(key);
          if (key == 0 || Logit(key) < most - 12) break;
          if (pass == 1 && 8 * masses[1] > args.top_p[row] * masses[0]) break;
          masses[pass] += exp2f(static_cast<float>(Logit(key) - most));
          at += key == head;
          last = key;
        }
      }
      const float lse = most + __log2f(masses[1]);
      for (int j = lane; j < vocab; j += 32) {
        const float x = args.logits[row * vocab + j], one = args.token[row] == begin + j ? 1 : 0;
        const float value = args.upstream[row] * (one - exp2f(x - lse));
        args.grad[row * vocab + j] = Key(x, begin + j) >= last ? value : 0;
      }
    }
  }
  if (lane == 0) mine->turns[block] = turn;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.rows + kRows - 1) / kRows;
  Gradients<<<needed < kMaxBlocks ? needed : kMaxBlocks, 32, 0, stream>>>(args);
}
