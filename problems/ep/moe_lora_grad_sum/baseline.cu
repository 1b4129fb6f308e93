#include <allranks/flags.h>

// An all-reduce for each gradient, in kernels: copy it to where peers can read it, meet, add up,
// and meet again before the copy may be overwritten.
struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 8, kThreads = 256, kData = 65536;

__global__ void Stage(Args args, const float* in, int count) {
  float* staged = reinterpret_cast<float*>(args.scratch + kData);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    staged[i] = in[i];
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

__global__ void Add(Args args, float* out, int count) {
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    float sum = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += reinterpret_cast<const float*>(args.scratch_peers[r] + kData)[i];
    }
    out[i] = sum;
  }
}

static void AllReduce(const Args& args, const float* in, float* out, int count,
                      cudaStream_t stream) {
  Stage<<<kBlocks, kThreads, 0, stream>>>(args, in, count);
  Meet<<<1, 32, 0, stream>>>(args);
  Add<<<kBlocks, kThreads, 0, stream>>>(args, out, count);
  Meet<<<1, 32, 0, stream>>>(args);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  AllReduce(args, args.grad_gate, args.sum_gate, args.low * args.wide, stream);
  AllReduce(args, args.grad_up, args.sum_up, args.low * args.wide, stream);
  AllReduce(args, args.grad_down, args.sum_down, args.narrow * args.low, stream);
}
