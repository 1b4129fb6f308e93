// Kernel by kernel: every rank notes where its answer for each token is, all ranks meet, and one
// thread per element reads the peers' notes and rows. A second meeting keeps inputs alive.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;
using Bf16 = Number<__nv_bfloat16>;

constexpr int kThreads = 256, kBlocks = 64, kNotes = 256;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__device__ std::int32_t* Notes(const Args& args, int at) {
  return reinterpret_cast<std::int32_t*>(args.scratch_peers[at] + kNotes);
}

__global__ void Note(Args args) {
  std::int32_t* notes = Notes(args, args.rank);
  for (int i = threadIdx.x; i < args.world * args.tokens; i += kThreads) notes[i] = -1;
  __syncthreads();
  for (int i = threadIdx.x; i < args.rows; i += kThreads) notes[args.to[i]] = i;
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
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Reduce(Args args) {
  for (std::int64_t n = blockIdx.x * kThreads + threadIdx.x; n < args.tokens * args.hidden;
       n += kBlocks * kThreads) {
    const std::int64_t token = n / args.hidden, j = n % args.hidden;
    float sum = 0;
    for (int r = 0; r < args.world; ++r) {
      const std::int64_t i = Notes(args, r)[args.rank * args.tokens + token];
      if (i < 0) continue;
      const std::uint16_t* row = reinterpret_cast<const std::uint16_t*>(args.y_peers[r]);
      sum =
          fmaf(args.weights[token * args.world + r], Bf16::ToFloat(row[i * args.hidden + j]), sum);
    }
    reinterpret_cast<std::uint16_t*>(args.out)[n] = Bf16::FromFloat(sum);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Note<<<1, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Reduce<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
