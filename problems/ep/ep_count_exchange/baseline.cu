// Three kernels: counts are put where peers can read them, all ranks meet, and one thread per
// expert reads all counts and adds them up. The next call meets again before it overwrites them.
#include <allranks/flags.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kData = 256;

__global__ void Put(Args args) {
  std::int32_t* put = reinterpret_cast<std::int32_t*>(args.scratch + kData);
  for (int i = threadIdx.x; i < args.world * args.per; i += blockDim.x) put[i] = args.counts[i];
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Offsets(Args args) {
  const int holder = threadIdx.x, per = static_cast<int>(args.per);
  if (holder >= args.world) return;
  int at = 0;
  for (int e = 0; e < per; ++e) {
    if (holder == args.rank) args.expert_starts[e] = at;
    int total = 0;
    for (int s = 0; s < args.world; ++s) {
      const auto* put = reinterpret_cast<const std::int32_t*>(args.scratch_peers[s] + kData);
      const int count = put[holder * per + e];
      if (s == args.rank) args.send_offsets[holder * per + e] = at + total;
      if (holder == args.rank) {
        args.recv_counts[e * args.world + s] = count;
        args.recv_offsets[e * args.world + s] = at + total;
      }
      total += count;
    }
    at += static_cast<int>((total + args.align - 1) / args.align * args.align);
  }
  if (holder == args.rank) args.expert_starts[per] = at;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Put<<<1, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Offsets<<<1, 32, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
