// Kernel by kernel: one thread per group makes fp8 in memory that peers can read, all ranks meet,
// every rank fetches bytes one by one, and all ranks meet again.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;

constexpr int kThreads = 128, kBlocks = 64, kData = 256;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__device__ float* Scales(const Args& args, int at) {
  return reinterpret_cast<float*>(args.scratch_peers[at] + kData + args.tokens * args.groups * 128);
}

__global__ void Quantise(Args args) {
  for (int n = blockIdx.x * kThreads + threadIdx.x; n < args.tokens * args.groups;
       n += kBlocks * kThreads) {
    const auto* x = reinterpret_cast<const std::uint16_t*>(args.x) + n * 128;
    auto* q = reinterpret_cast<std::uint16_t*>(args.scratch + kData + n * 128);
    const auto value = [&](int i) { return Number<__nv_bfloat16>::ToFloat(x[i]); };
    float largest = 0;
    for (int i = 0; i < 128; ++i) largest = fmaxf(largest, fabsf(value(i)));
    const float factor = largest > 0 ? 448 / largest : 0;
    for (int i = 0; i < 64; ++i) q[i] = TwoToE4m3(value(2 * i) * factor, value(2 * i + 1) * factor);
    Scales(args, args.rank)[n] = largest / 448;
  }
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

// A block per source.
__global__ void Fetch(Args args) {
  const int s = blockIdx.x, row = static_cast<int>(args.groups) * 128;
  std::int64_t count = 0;
  for (int token = 0; token < args.tokens; ++token) {
    bool comes = false;
    for (int k = 0; k < args.topk; ++k) {
      comes |= args.ids_peers[s][token * args.topk + k] / args.per == args.rank;
    }
    if (!comes) continue;
    const std::int64_t to = s * args.tokens + count++;
    for (int i = threadIdx.x; i < row; i += kThreads) {
      args.recv_q[to * row + i] = args.scratch_peers[s][kData + token * row + i];
    }
    for (int g = threadIdx.x; g < args.groups; g += kThreads) {
      args.recv_scale[to * args.groups + g] = Scales(args, s)[token * args.groups + g];
    }
    if (threadIdx.x == 0) args.recv_token[to] = token;
  }
  if (threadIdx.x == 0) args.recv_count[s] = static_cast<std::int32_t>(count);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Quantise<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Fetch<<<args.world, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
