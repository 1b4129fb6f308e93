#include <allranks/flags.h>

// All micro-batches to everybody, in kernels: copy the input to where peers can read it, meet, add
// up the tree by its definition, and meet again before the copy may be overwritten.
struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 16, kThreads = 128, kData = 65536;

__global__ void Stage(Args args) {
  float* staged = reinterpret_cast<float*>(args.scratch + kData);
  const std::int64_t count = args.parts * args.n;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    staged[i] = args.in[i];
  }
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->reached[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Sum(Args args) {
  const int batch = args.world * args.parts;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += kBlocks * kThreads) {
    float x[32];
    for (int m = 0; m < batch; ++m) {
      const void* staged = args.scratch_peers[m / args.parts] + kData;
      x[m] = static_cast<const float*>(staged)[m % args.parts * args.n + i];
    }
    // Nodes of one level after the other; one without a neighbour goes up as it is.
    for (int size = 1; size < batch; size *= 2) {
      for (int a = 0; a + size < batch; a += 2 * size) x[a] += x[a + size];
    }
    args.out[i] = x[0];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
