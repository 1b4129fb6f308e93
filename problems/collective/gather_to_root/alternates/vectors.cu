// Ordinary stores of 16 bytes by many threads. Lengths lie beside the flags, in two tables in turn;
// every block has its own table and flags, and a thread per peer tells and waits.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 16, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t steps[kMaxBlocks][kMaxRanks];  // 2 * call - 1: has entered; 2 * call: has stored
  std::int32_t lengths[2][kMaxBlocks][kMaxRanks];
};

__device__ void Meet(const Args& args, std::uint32_t step) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->steps[blockIdx.x][args.rank], step);
    WaitAcquireSys(&mine->steps[blockIdx.x][threadIdx.x], step);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) Gather(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int block = blockIdx.x, thread = threadIdx.x;
  const std::uint32_t call = mine->calls[block] + 1;
  if (thread < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread]);
    peer->lengths[call % 2][block][args.rank] = *args.length;
  }
  Meet(args, 2 * call - 1);
  std::int64_t begin = 0, rows = 0;
  for (int r = 0; r <= args.world; ++r) {
    if (r == args.rank) begin = rows;
    if (args.rank == args.root && block == 0 && thread == r) args.starts[r] = rows;
    if (r < args.world) rows += mine->lengths[call % 2][block][r];
  }
  const std::int64_t quads = args.width / 4, vectors = *args.length * quads;
  for (std::int64_t i = block * kThreads + thread; i < vectors; i += gridDim.x * kThreads) {
    const uint4 v = reinterpret_cast<const uint4*>(args.in)[i];
    reinterpret_cast<uint4*>(args.out_peers[args.root])[begin * quads + i] = v;
  }
  Meet(args, 2 * call);
  if (thread == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.rows * args.width / 4 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Gather<<<blocks, kThreads, 0, stream>>>(args);
}
