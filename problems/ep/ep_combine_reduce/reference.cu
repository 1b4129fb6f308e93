// Every rank pushes its answers into slots at the tokens' owners: slot (token, source). Block b has
// the same columns of every row on all ranks, so blocks are equally loaded, and block b needs to
// hear of the blocks b only. Since an owner does not know which answers come, a mark stands beside
// each slot and block: the number of the call that has written it. When all sources have told, an
// owner's thread fetches all rows that are marked and adds them up by ascending rank.
//
// Slots and marks exist twice, for odd and even calls. A source writes into those of call k again
// in call k + 2, after it has heard of the owner in call k + 1; the owner had ended call k then.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 128, kBatch = 3;
constexpr int kWide = 4;  // vectors of 16 bytes: columns of a block, before it takes the next ones

// The beginning of every rank's scratch. Marks follow, then slots.
struct Control {
  std::uint32_t calls[kMaxBlocks];            // that this block has completed
  std::uint32_t sent[kMaxBlocks][kMaxRanks];  // by source: the last call whose answers are here
};

// Marks of a block: by call % 2, token and source.
struct Marks {
  std::uint32_t of[kMaxRanks];
};
__device__ Marks* MarksAt(const Args& args, int at) {
  return reinterpret_cast<Marks*>(args.scratch_peers[at] + sizeof(Control)) +
         blockIdx.x * 2 * args.tokens;
}
__device__ uint4* SlotsAt(const Args& args, int at) {
  const std::int64_t marks = kMaxBlocks * 2 * args.tokens * sizeof(Marks);
  return reinterpret_cast<uint4*>(args.scratch_peers[at] + sizeof(Control) + marks);
}
__device__ float Value(const uint4& row, int j) {
  const std::uint32_t pair = reinterpret_cast<const std::uint32_t*>(&row)[j / 2];
  return __uint_as_float(j % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
}

__global__ void __launch_bounds__(kThreads) CombineReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int rank = args.rank, world = args.world, tokens = static_cast<int>(args.tokens);
  const int vectors = static_cast<int>(args.hidden / 8), rows = static_cast<int>(args.rows);
  const int set = call % 2 * tokens, line = threadIdx.x / kWide, lines = kThreads / kWide;
  const int first = blockIdx.x * kWide + threadIdx.x % kWide, stride = gridDim.x * kWide;

  for (int v = first; v < vectors; v += stride) {
    const uint4* y = reinterpret_cast<const uint4*>(args.y) + v;
    for (int base = line; base < rows; base += kBatch * lines) {
      uint4 row[kBatch];
      int to[kBatch];
#pragma unroll
      for (int n = 0; n < kBatch; ++n) {  // all on their way before the first is needed
        const int i = base + n * lines;
        if (i >= rows) continue;
        row[n] = y[i * vectors];
        to[n] = args.to[i];
      }
#pragma unroll
      for (int n = 0; n < kBatch; ++n) {
        if (base + n * lines >= rows) continue;
        const int owner = to[n] / tokens, slot = set + to[n] - owner * tokens;
        SlotsAt(args, owner)[(slot * world + rank) * vectors + v] = row[n];
        if (v == blockIdx.x * kWide) MarksAt(args, owner)[slot].of[rank] = call;  //@mark
      }
    }
  }
  __syncthreads();  //@sent
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->sent[blockIdx.x][rank], call);        //@tell
    WaitAcquireSys(&mine->sent[blockIdx.x][threadIdx.x], call);  //@wait
  }
  __syncthreads();  //@arrived

  for (int token = line; token < tokens; token += lines) {
    const Marks marks = MarksAt(args, rank)[set + token];
    float weight[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < world) weight[r] = args.weights[token * world + r];
    }
    for (int v = first; v < vectors; v += stride) {
      const uint4* slots = SlotsAt(args, rank) + (set + token) * world * vectors + v;
      uint4 answers[kMaxRanks];
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (r < world && marks.of[r] == call) answers[r] = slots[r * vectors];
      }
      float sum[8] = {};
#pragma unroll
      for (int step = 0; step < kMaxRanks; ++step) {
        const int r = step;
        if (r >= world || marks.of[r] != call) continue;
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[j] = fmaf(weight[r], Value(answers[r], j), sum[j]);
      }
      Pack<__nv_bfloat16> result;
#pragma unroll
      for (int j = 0; j < 8; ++j) result.Set(j, sum[j]);
      reinterpret_cast<Pack<__nv_bfloat16>*>(args.out)[token * vectors + v] = result;
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.hidden / 8 + kWide - 1) / kWide);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  CombineReduce<<<blocks, kThreads, 0, stream>>>(args);
}
