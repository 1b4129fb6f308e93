// All ranks meet; a thread per expert walks through the choices of all ranks and notes who fits; a
// block per expert fetches rows, number by number; all ranks meet again.
#include <allranks/flags.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Assign(Args args) {
  for (int item = threadIdx.x; item < args.world * args.tokens; item += blockDim.x) {
    args.fits[item] = 0;
  }
  __syncthreads();
  const int expert = threadIdx.x, per = static_cast<int>(args.per);
  const int room = args.room_peers[expert / per][expert % per];
  int place = 0;
  for (int r = 0; r < args.world; ++r) {
    for (int i = 0; i < args.tokens * args.topk; ++i) {
      if (args.ids_peers[r][i] != expert) continue;
      const std::int64_t item = r * args.tokens + i / args.topk;
      if (place < room) atomicOr(&args.fits[item], 1u << expert);
      if (r == args.rank) args.slots[i] = place < room ? place : -1;
      if (expert / per == args.rank && place < room) {
        args.recv_from[expert % per * args.most + place] = static_cast<int>(item);
      }
      ++place;
    }
  }
}

__global__ void Fetch(Args args) {
  const int expert = static_cast<int>(args.rank * args.per + blockIdx.x);
  std::int64_t row = blockIdx.x * args.most;
  for (std::int64_t item = 0; item < args.world * args.tokens; ++item) {
    if ((args.fits[item] >> expert & 1) == 0) continue;
    const auto* from = reinterpret_cast<const std::uint16_t*>(args.x_peers[item / args.tokens]);
    auto* to = reinterpret_cast<std::uint16_t*>(args.recv_x) + row++ * args.hidden;
    for (std::int64_t j = threadIdx.x; j < args.hidden; j += 64) {
      to[j] = from[item % args.tokens * args.hidden + j];
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Assign<<<1, static_cast<int>(args.world * args.per), 0, stream>>>(args);
  Fetch<<<static_cast<int>(args.per), 64, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
