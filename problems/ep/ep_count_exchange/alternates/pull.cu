// By reading: once all ranks are inside the call, everyone fetches the counts from where they are.
// A warp has a holder and walks over its experts. Nobody leaves before all have read.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 256;

struct Control {
  std::uint32_t calls;
  std::uint32_t entered[kMaxRanks];  // by peer: the last call it has entered
  std::uint32_t read[kMaxRanks];     // by peer: the last call whose counts it has read here
};

__global__ void Counts(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % args.world]);
  const std::uint32_t call = mine->calls + 1;
  const int rank = args.rank, world = args.world, per = static_cast<int>(args.per);
  const int align = static_cast<int>(args.align);
  if (threadIdx.x < world) {
    StoreReleaseSys(&peer->entered[rank], call);
    WaitAcquireSys(&mine->entered[threadIdx.x], call);
  }
  __syncthreads();
  const int holder = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int total_experts = holder < world ? (per + 31) / 32 * 32 : 0;
  int base = 0;
  for (int e = lane; e < total_experts; e += 32) {
    int total = 0;
    for (int s = 0; e < per && s < world; ++s) total += args.counts_peers[s][holder * per + e];
    const int padded = (total + align - 1) / align * align;
    int end = padded;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0u, end, step);
      if (lane >= step) end += other;
    }
    int at = base + end - padded;
    base += __shfl_sync(~0u, end, 31);
    if (e >= per) continue;
    if (holder == rank) args.expert_starts[e] = at;
    if (holder == rank && e == per - 1) args.expert_starts[per] = at + padded;
    for (int s = 0; s < world; ++s) {
      const int count = args.counts_peers[s][holder * per + e];
      if (s == rank) args.send_offsets[holder * per + e] = at;
      if (holder == rank) args.recv_counts[e * world + s] = count;
      if (holder == rank) args.recv_offsets[e * world + s] = at;
      at += count;
    }
  }
  __syncthreads();
  if (threadIdx.x < world) {
    StoreReleaseSys(&peer->read[rank], call);
    WaitAcquireSys(&mine->read[threadIdx.x], call);
  }
  if (threadIdx.x == 0) mine->calls = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Counts<<<1, kThreads, 0, stream>>>(args);
}
