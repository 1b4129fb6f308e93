// Entries are read by the ranks that need them. Blocks fetch their parts of the list into this
// rank's own memory, once each, and meet on a counter; then every block multiplies its rows. A rank
// tells all others when it has read, and leaves when all have read what is here.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kBlocks = 32, kThreads = 256;

// The beginning of every rank's scratch; entries follow.
struct Control {
  std::uint32_t calls[kBlocks];
  std::uint32_t fetched;  // blocks of this rank, of all calls
  std::uint32_t entered[kMaxRanks][kBlocks], read[kMaxRanks][kBlocks];
};

__global__ void __launch_bounds__(kThreads) Multiply(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int thread = threadIdx.x, block = blockIdx.x, entries = args.entries;
  const std::uint32_t call = mine->calls[block] + 1;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread % args.world]);
  float* fetched = reinterpret_cast<float*>(mine + 1);
  if (thread < args.world) {
    StoreReleaseSys(&peer->entered[args.rank][block], call);
    WaitAcquireSys(&mine->entered[thread][block], call);
  }
  __syncthreads();
  for (int i = block * kThreads + thread; i < args.needed; i += kBlocks * kThreads) {
    const int column = args.columns[i], owner = column / entries;
    fetched[i] = args.x_peers[owner][column - owner * entries];
  }
  __syncthreads();
  if (thread < args.world) StoreReleaseSys(&peer->read[args.rank][block], call);
  if (thread == 0) {
    AddReleaseGpu(&mine->fetched, 1u);
    WaitAcquireGpu(&mine->fetched, call * kBlocks);
  }
  __syncthreads();
  for (int row = block * kThreads + thread; row < args.rows; row += kBlocks * kThreads) {
    float sum = 0;
    for (int j = 0; j < args.per_row; j += 4) {
      const int4 at = *reinterpret_cast<const int4*>(&args.index[row * args.per_row + j]);
      const float4 v = *reinterpret_cast<const float4*>(&args.value[row * args.per_row + j]);
      sum += v.x * fetched[at.x] + v.y * fetched[at.y] + v.z * fetched[at.z] + v.w * fetched[at.w];
    }
    args.y[row] = sum;
  }
  if (thread < args.world) WaitAcquireSys(&mine->read[thread][block], call);
  if (thread == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Multiply<<<kBlocks, kThreads, 0, stream>>>(args);
}
