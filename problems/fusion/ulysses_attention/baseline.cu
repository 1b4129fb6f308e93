// Kernel by kernel: meet, gather the rows of the own heads, attend with a warp per query, meet,
// fetch the outputs of the own rows from all ranks, meet.
#include <allranks/flags.h>

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 32, kThreads = 256, kDim = 64;

// Behind the flags: outputs of all positions and own heads, then their rows of q, k and v.
__device__ float* Outputs(std::uint8_t* scratch) { return reinterpret_cast<float*>(scratch + 256); }
__device__ std::uint16_t* Rows(const Args& args) {
  const std::int64_t rows = args.world * args.tokens * args.heads;
  return reinterpret_cast<std::uint16_t*>(Outputs(args.scratch) + rows * kDim);
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

__global__ void Gather(Args args) {
  const int width = static_cast<int>(args.heads) * kDim, tokens = static_cast<int>(args.tokens);
  const int n = args.world * tokens * width;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += kBlocks * kThreads) {
    const int source = i / width / tokens, row = i / width % tokens;
    const int at = (row * args.world + args.rank) * width + i % width;
    Rows(args)[i] = reinterpret_cast<const std::uint16_t*>(args.q_peers[source])[at];
    Rows(args)[n + i] = reinterpret_cast<const std::uint16_t*>(args.k_peers[source])[at];
    Rows(args)[2 * n + i] = reinterpret_cast<const std::uint16_t*>(args.v_peers[source])[at];
  }
}

__device__ float Element(std::uint16_t bits) {
  return __uint_as_float(static_cast<std::uint32_t>(bits) << 16);
}

__global__ void Attend(Args args) {
  const int heads = static_cast<int>(args.heads), all = args.world * static_cast<int>(args.tokens);
  const int lane = threadIdx.x % 32, n = all * heads;
  const std::uint16_t *q = Rows(args), *k = q + n * kDim, *v = k + n * kDim;
  for (int i = (blockIdx.x * kThreads + threadIdx.x) / 32; i < n; i += kBlocks * kThreads / 32) {
    const float x = Element(q[i * kDim + lane]), y = Element(q[i * kDim + lane + 32]);
    float highest = -1e30f, sum = 0, first = 0, second = 0;
    for (int row = i % heads; row < n; row += heads) {
      float dot = x * Element(k[row * kDim + lane]) + y * Element(k[row * kDim + lane + 32]);
      for (int d = 16; d > 0; d /= 2) dot += __shfl_xor_sync(~0u, dot, d);
      const float top = fmaxf(highest, dot / 8), fade = __expf(highest - top);
      const float weight = __expf(dot / 8 - top);
      first = first * fade + weight * Element(v[row * kDim + lane]);
      second = second * fade + weight * Element(v[row * kDim + lane + 32]);
      sum = sum * fade + weight;
      highest = top;
    }
    Outputs(args.scratch)[i * kDim + lane] = first / sum;
    Outputs(args.scratch)[i * kDim + lane + 32] = second / sum;
  }
}

__global__ void Return(Args args) {
  const int width = static_cast<int>(args.heads) * kDim, tokens = static_cast<int>(args.tokens);
  const int n = args.world * tokens * width;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += kBlocks * kThreads) {
    const int row = i / width / args.world, from = i / width % args.world;
    const int at = (args.rank * tokens + row) * width + i % width;
    args.out[i] = Outputs(args.scratch_peers[from])[at];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Gather<<<kBlocks, kThreads, 0, stream>>>(args);
  Attend<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Return<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
