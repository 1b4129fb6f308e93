// Every rank tells all others all its counts, as words of a count and the number of the call: who
// sees the number has the count, without a fence. Block d deals with the experts of rank d, and a
// thread with one expert and one source, so that it sends one word and waits for one. Then prefix
// sums by shuffles: over the sources of an expert, the experts of a warp, and the warps.
//
// Two tables take turns. A peer writes into the table of call k again in call k + 2, after it has
// had this rank's words of call k + 1, which were sent after all of call k was read.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxPer = 64, kMaxWarps = kMaxPer * kMaxRanks / 32;

struct Control {
  std::uint64_t calls[kMaxRanks];                         // that this block has completed
  std::uint64_t table[2][kMaxRanks][kMaxPer][kMaxRanks];  // by holder, expert and source
};

__global__ void Counts(Args args) {
  __shared__ int sums[kMaxWarps];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int rank = args.rank, world = args.world, per = static_cast<int>(args.per);
  const int align = static_cast<int>(args.align), holder = blockIdx.x;
  const int expert = threadIdx.x / kMaxRanks, source = threadIdx.x % kMaxRanks;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const bool used = expert < per && source < world;

  int count = 0;
  if (used) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[source]);
    std::uint64_t word = call << 32 | args.counts[holder * per + expert];
    StoreRelaxedSys(&peer->table[call % 2][holder][expert][rank], word);  //@send
    do {
      word = LoadRelaxedSys(&mine->table[call % 2][holder][expert][source]);  //@look
    } while (word >> 32 != call);  //@wait
    count = static_cast<int>(word);
  }

  int upto = count;
  for (int step = 1; step < kMaxRanks; step *= 2) {
    const int other = __shfl_up_sync(~0u, upto, step, kMaxRanks);
    if (source >= step) upto += other;
  }
  const int total = __shfl_sync(~0u, upto, kMaxRanks - 1, kMaxRanks);
  const int padded = (total + align - 1) / align * align;
  int end = padded;
  for (int step = kMaxRanks; step < 32; step *= 2) {
    const int other = __shfl_up_sync(~0u, end, step);
    if (lane >= step) end += other;
  }
  if (lane == 31) sums[warp] = end;
  __syncthreads();  //@warps
  for (int w = 0; w < warp; ++w) end += sums[w];
  const int start = end - padded;

  if (used && source == rank) args.send_offsets[holder * per + expert] = start + upto - count;
  if (used && holder == rank) {
    args.recv_counts[expert * world + source] = count;
    args.recv_offsets[expert * world + source] = start + upto - count;
    if (threadIdx.x == 0) args.expert_starts[0] = 0;
    if (source == 0) args.expert_starts[expert + 1] = start + padded;
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int threads = static_cast<int>(args.per * kMaxRanks + 31) / 32 * 32;
  Counts<<<args.world, threads, 0, stream>>>(args);
}
