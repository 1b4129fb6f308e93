#include <allranks/flags.h>

// Everyone sends its input to everyone and computes alone: for vectors of up to some 100 KB one
// exchange of all is cheaper than two, one per kind of group. So nobody needs to know the grid
// before it has everything; grid and tokens come with the flags, as parts of the same words.
//
// Block b has the same vectors everywhere, so it needs to hear of the blocks b only. All meet all
// in every call, so nobody is two calls ahead: inputs and flags lie in two sets by turns.
using namespace allranks;
constexpr int kMaxBlocks = 32, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];  // that this block has completed
  // By sender: call << 36 | tokens << 32 | grid, whose ranks have four bits each.
  std::uint64_t notes[2][kMaxBlocks][kMaxRanks];
};

__device__ void Add(float4& sum, float4 v, float weight) {
  sum = {sum.x + weight * v.x, sum.y + weight * v.y, sum.z + weight * v.z, sum.w + weight * v.w};
}

__global__ void __launch_bounds__(kThreads) Sums(Args args) {
  __shared__ std::uint64_t notes[kMaxRanks];
  const int b = blockIdx.x, t = threadIdx.x, world = args.world, cols = args.cols;
  const int vectors = args.n / 4, stride = gridDim.x * kThreads;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[b] + 1;
  const int set = call % 2;
  // What rank `from` has sent to rank `to`.
  const auto slots = [&](int to, int from) {
    return reinterpret_cast<float4*>(args.scratch_peers[to] + 8192) +
           (set * world + from) * vectors;
  };
  std::uint64_t note = std::uint64_t{call} << 36;
  if (t < world) {
    note |= std::uint64_t{args.tokens[0]} << 32;
    for (int p = 0; p < world; ++p) note |= static_cast<std::uint64_t>(args.grid[p]) << 4 * p;
  }
  for (int i = b * kThreads + t; i < vectors; i += stride) {
    const float4 v = reinterpret_cast<const float4*>(args.in)[i];
    for (int step = 0; step < world; ++step) {
      const int r = args.rank + step < world ? args.rank + step : args.rank + step - world;
      slots(r, args.rank)[i] = v;
    }
  }
  __syncthreads();  //@before
  if (t < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t]);
    StoreReleaseSys(&peer->notes[set][b][args.rank], note);  //@tell
    do {
      note = LoadAcquireSys(&mine->notes[set][b][t]);  //@observe
    } while (note >> 36 != call);
    notes[t] = note;
  }
  __syncthreads();  //@after

  const auto rank_at = [grid = static_cast<std::uint32_t>(notes[0])](int place) {
    return grid >> 4 * place & 15;
  };
  int place = 0;
  while (place < world - 1 && rank_at(place) != args.rank) ++place;
  const int row = place / cols * cols, column = place - row;  // row: its first place
  for (int i = b * kThreads + t; i < vectors; i += stride) {
    float4 v[kMaxRanks], sum = {}, out = {};
#pragma unroll
    for (int p = 0; p < kMaxRanks; ++p) {  // all on their way before the first is needed
      if (p < world) v[p] = slots(args.rank, rank_at(p))[i];
    }
    int begin = 0;  // of the row of place p
#pragma unroll
    for (int p = 0; p < kMaxRanks; ++p) {
      if (p >= world) break;
      Add(sum, v[p], 1);
      if (p + 1 < world && p + 1 < begin + cols) continue;
      if (begin == row) reinterpret_cast<float4*>(args.row_sum)[i] = sum;
      if (begin + column < world) Add(out, sum, notes[rank_at(begin + column)] >> 32 & 15);
      begin += cols;
      sum = {};
    }
    reinterpret_cast<float4*>(args.out)[i] = out;
  }
  if (t == 0) mine->calls[b] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.n / 4 + kThreads - 1) / kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Sums<<<blocks, kThreads, 0, stream>>>(args);
}
