// Words are found one after the other, as the largest that is left by a reduction over the warp:
// first those of the own shard, which a block pushes to all ranks with a flag behind, then those of
// all lists, of which lane r goes through that of rank r. Two sets, used in turn: a rank that tells
// of call k + 1 has read what was pushed in call k, and nobody overwrites it before it has told so.
#include <allranks/flags.h>

constexpr int kMaxBlocks = 64, kBest = 32;  // blocks of one warp

struct Control {
  std::uint32_t calls[kMaxBlocks], told[kMaxBlocks][kMaxRanks];
};
using Lists = std::uint32_t[kMaxRanks][kBest];

__device__ int Logit(std::uint32_t key) { return static_cast<int>(key >> 15) - 8193; }

__global__ void LogProbs(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int lane = threadIdx.x, block = blockIdx.x, vocab = static_cast<int>(args.vocab);
  const std::uint32_t call = mine->calls[block] + 1;
  const std::int64_t set = (call & 1) * args.rows;
  const auto lists = [&](int rank) {
    return reinterpret_cast<Lists*>(args.scratch_peers[rank] + sizeof(Control)) + set;
  };
  for (std::int64_t row = block; row < args.rows; row += gridDim.x) {
    std::uint32_t own = 0, last = ~0u;
    for (int n = 0; n < args.k && n < vocab; ++n) {
      std::uint32_t largest = 0;
      for (int j = lane; j < vocab; j += 32) {
        const int x = static_cast<int>(args.logits[row * vocab + j]) + 8193;
        const auto key = static_cast<std::uint32_t>(x << 15 | (32767 - args.rank * vocab - j));
        if (key < last) largest = max(largest, key);
      }
      last = __reduce_max_sync(~0u, largest);
      if (n == lane) own = last;
    }
    for (int r = 0; r < args.world; ++r) lists(r)[row][args.rank][lane] = own;
  }
  __syncwarp();
  if (lane < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[lane]);
    allranks::StoreReleaseSys(&peer->told[block][args.rank], call);
    allranks::WaitAcquireSys(&mine->told[block][lane], call);
  }
  __syncwarp();
  for (std::int64_t row = block; row < args.rows; row += gridDim.x) {
    float masses[2] = {0, 0}, chosen = -INFINITY;  // of all that count, and of those kept
    int kept = 0, most = 0;
    for (int pass = 0; pass < 2; ++pass) {
      for (int n = 0, at = 0; n < args.k; ++n) {
        const bool more = lane < args.world && at < kBest;
        const std::uint32_t head = more ? lists(args.rank)[row][lane][at] : 0;
        const std::uint32_t key = __reduce_max_sync(~0u, head);
        if (n == 0) most = Logit(key);
        if (key == 0 || Logit(key) < most - 12) break;
        if (pass == 1 && 8 * masses[1] > args.top_p[row] * masses[0]) break;
        masses[pass] += exp2f(static_cast<float>(Logit(key) - most));
        at += key == head;
        kept += pass;
        if (pass == 1 && 32767 - (key & 32767) == args.token[row]) chosen = Logit(key);
      }
    }
    args.lse[row] = most + __log2f(masses[1]);
    args.logprob[row] = chosen - (most + __log2f(masses[1]));
    args.kept[row] = kept;
  }
  if (lane == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  LogProbs<<<args.rows < kMaxBlocks ? args.rows : kMaxBlocks, 32, 0, stream>>>(args);
}
