#include <allranks/flags.h>

// Owners pull: between two meetings of block b with the blocks b of all peers, a block loads the
// ids of all lists for its rank, a chunk at a time, and its warps add up the gradients of its rows,
// which they load from the sources themselves.

using namespace allranks;
constexpr int kMaxBlocks = 8, kThreads = 512, kWarps = kThreads / 32;

struct Control {
  std::uint32_t meetings[kMaxBlocks];
  std::uint32_t reached[kMaxBlocks][kMaxRanks];  // by peer: the last meeting that it has come to
};

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[blockIdx.x][args.rank], meeting);
    WaitAcquireSys(&mine->reached[blockIdx.x][threadIdx.x], meeting);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) Pull(Args args) {
  __shared__ int rows[kThreads], counts[kMaxRanks][kMaxRanks];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t before = mine->meetings[blockIdx.x];
  const int warp = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
  const int quads = args.quads, warps = gridDim.x * kWarps;
  float4* out = reinterpret_cast<float4*>(args.out);
  for (int row = warp; row < args.rows; row += warps) {
    for (int v = lane; v < quads; v += 32) out[row * quads + v] = make_float4(0, 0, 0, 0);
  }
  Meet(args, before + 1);
  if (threadIdx.x < args.world * args.world) {
    const int s = threadIdx.x / args.world, r = threadIdx.x % args.world;
    counts[s][r] = args.counts_peers[s][r];
  }
  __syncthreads();
  for (int s = 0; s < args.world; ++s) {
    const float4* grads = reinterpret_cast<const float4*>(args.grads_peers[s]);
    int begin = 0;
    for (int r = 0; r < args.rank; ++r) begin += counts[s][r];
    const int end = begin + counts[s][args.rank];
    for (int base = begin; base < end; base += kThreads) {
      const int size = min(end - base, kThreads);
      if (threadIdx.x < size) rows[threadIdx.x] = args.ids_peers[s][base + threadIdx.x];
      __syncthreads();
      for (int first = 0; first < size; first += 32) {
        const int row = first + lane < size ? rows[first + lane] : -1;
        std::uint32_t left = __ballot_sync(~0u, row >= 0 && row % warps == warp);
        for (; left != 0; left &= left - 1) {
          const int i = first + __ffs(left) - 1;
          for (int v = lane; v < quads; v += 32) {
            const float4 g = grads[(base + i) * quads + v];
            float4& sum = out[rows[i] * quads + v];
            sum = {sum.x + g.x, sum.y + g.y, sum.z + g.z, sum.w + g.w};
          }
        }
      }
      __syncthreads();
    }
  }
  Meet(args, before + 2);
  if (threadIdx.x == 0) mine->meetings[blockIdx.x] = before + 2;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.rows + kWarps - 1) / kWarps;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  Pull<<<blocks, kThreads, 0, stream>>>(args);
}
