// Kernel by kernel: all ranks meet, one thread per token and expert searches that expert's list for
// the token, one thread per element adds up what was found, and a second meeting keeps inputs
// alive.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;

constexpr int kThreads = 256, kBlocks = 32;

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

// Where the answer of expert g for an own token is, or -1; as the peers' `to` is indexed.
__device__ std::int32_t* Found(const Args& args, std::int64_t token) {
  return reinterpret_cast<std::int32_t*>(args.scratch + 256) + token * args.world * args.per;
}

__global__ void Find(Args args) {
  const int token = blockIdx.x, g = threadIdx.x, r = g / args.per, e = g % args.per;
  std::int32_t found = -1;
  for (int i = 0; i < args.used_peers[r][e]; ++i) {
    const std::int64_t at = e * args.most + i;
    if (args.to_peers[r][at] == args.rank * args.tokens + token) found = at;
  }
  Found(args, token)[g] = found;
}

__global__ void Add(Args args) {
  for (std::int64_t n = blockIdx.x * kThreads + threadIdx.x; n < args.tokens * args.hidden;
       n += kBlocks * kThreads) {
    const std::int64_t token = n / args.hidden, j = n % args.hidden;
    float sum = 0;
    for (int g = 0; g < args.world * args.per; ++g) {
      const int r = g / args.per, i = Found(args, token)[g];
      if (i < 0) continue;
      const auto* y = reinterpret_cast<const std::uint16_t*>(args.y_peers[r]);
      const float value = Number<__nv_bfloat16>::ToFloat(y[i * args.hidden + j]);
      sum = fmaf(args.gates_peers[r][i], value, sum);
    }
    args.out[n] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Find<<<args.tokens, args.world * args.per, 0, stream>>>(args);
  Add<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
