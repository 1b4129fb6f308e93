// One block. Counts are pushed to all peers by plain stores, in tables that take turns, and a flag
// per peer says that its table has come; then a warp has an expert's holder and walks over experts.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 256, kMaxCounts = 512;

struct Control {
  std::uint32_t calls;
  std::uint32_t told[kMaxRanks];  // by peer: the last call whose counts are here
  std::int32_t table[2][kMaxRanks][kMaxCounts];
};

__global__ void Counts(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  const int rank = args.rank, world = args.world, per = static_cast<int>(args.per);
  const int align = static_cast<int>(args.align);
  for (int i = threadIdx.x; i < world * per; i += kThreads) {
    const std::int32_t count = args.counts[i];
    for (int r = 0; r < world; ++r) {
      reinterpret_cast<Control*>(args.scratch_peers[r])->table[call % 2][rank][i] = count;
    }
  }
  __syncthreads();
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->told[rank], call);
    WaitAcquireSys(&mine->told[threadIdx.x], call);
  }
  __syncthreads();
  const int holder = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int total_experts = holder < world ? (per + 31) / 32 * 32 : 0;
  int base = 0;
  for (int e = lane; e < total_experts; e += 32) {
    int total = 0;
    for (int s = 0; e < per && s < world; ++s) total += mine->table[call % 2][s][holder * per + e];
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
      const int count = mine->table[call % 2][s][holder * per + e];
      if (s == rank) args.send_offsets[holder * per + e] = at;
      if (holder == rank) args.recv_counts[e * world + s] = count;
      if (holder == rank) args.recv_offsets[e * world + s] = at;
      at += count;
    }
  }
  if (threadIdx.x == 0) mine->calls = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Counts<<<1, kThreads, 0, stream>>>(args);
}
