// By pulling: block b stages its rows, tells block b of every peer, and reads theirs when all have
// told. Staging buffers are used in turn: a rank leaves call k + 1 after every peer has come to it,
// so when it stages call k + 2 nobody reads call k any more.
#include <allranks/flags.h>

constexpr int kMaxBlocks = 64, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t staged[kMaxBlocks][kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) ReduceNorm(Args args) {
  __shared__ float of_warp[kThreads / 32];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int vectors = static_cast<int>(args.hidden / 4);
  const std::int64_t buffer = sizeof(Control) + (call & 1) * args.rows * args.hidden * 4;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    for (int i = threadIdx.x; i < vectors; i += kThreads) {
      const std::int64_t at = row * vectors + i;
      reinterpret_cast<float4*>(args.scratch + buffer)[at] =
          reinterpret_cast<const float4*>(args.in)[at];
    }
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->staged[blockIdx.x][args.rank], call);
    allranks::WaitAcquireSys(&mine->staged[blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
  float4* stream = reinterpret_cast<float4*>(args.stream);
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    float squares = 0;
    for (int i = threadIdx.x; i < vectors; i += kThreads) {
      const std::int64_t at = row * vectors + i;
      float4 h = reinterpret_cast<const float4*>(args.residual)[at];
      for (int r = 0; r < args.world; ++r) {
        const float4 v = reinterpret_cast<float4*>(args.scratch_peers[r] + buffer)[at];
        h = {h.x + v.x, h.y + v.y, h.z + v.z, h.w + v.w};
      }
      stream[at] = h;
      squares += h.x * h.x + h.y * h.y + h.z * h.z + h.w * h.w;
    }
    for (int d = 16; d > 0; d /= 2) squares += __shfl_xor_sync(~0u, squares, d);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = squares;
    __syncthreads();
    float total = 0;
    for (float s : of_warp) total += s;
    __syncthreads();
    const float factor = 1 / sqrtf(total / args.hidden + 1e-5f);
    for (int i = threadIdx.x; i < vectors; i += kThreads) {
      const float4 w = reinterpret_cast<const float4*>(args.weight)[i];
      const float4 h = stream[row * vectors + i];
      reinterpret_cast<float4*>(args.norm)[row * vectors + i] = {
          w.x * h.x * factor, w.y * h.y * factor, w.z * h.z * factor, w.w * h.w * factor};
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = args.rows < kMaxBlocks ? static_cast<int>(args.rows) : kMaxBlocks;
  ReduceNorm<<<blocks, kThreads, 0, stream>>>(args);
}
