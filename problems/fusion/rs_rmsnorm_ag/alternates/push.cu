// By pushing plain vectors: block b stores its rows of each owner into slots there, tells block b
// of every peer, adds up and normalises its own rows when all have told, stores them into every
// `norm`, and tells again. The first flag says that the sender is in the call, so that its `norm`
// is open. A rank leaves after the second flags of all peers, which are behind their last look at
// their slots, so one set of slots suffices.
#include <allranks/flags.h>

constexpr int kMaxBlocks = 64, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t reached[kMaxBlocks][kMaxRanks];  // by peer: two per call
};

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    allranks::StoreReleaseSys(&peer->reached[blockIdx.x][args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[blockIdx.x][threadIdx.x], meeting);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) ScatterNormGather(Args args) {
  __shared__ float total;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int vectors = static_cast<int>(args.hidden / 4);
  const std::int64_t all = args.rows * vectors;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    for (int i = threadIdx.x; i < vectors * args.world; i += kThreads) {
      const int r = (args.rank + i / vectors) % args.world;
      const std::int64_t at = row * vectors + i % vectors;
      float4* slots = reinterpret_cast<float4*>(args.scratch_peers[r] + sizeof(Control));
      slots[args.rank * all + at] = reinterpret_cast<const float4*>(args.in)[r * all + at];
    }
  }
  Meet(args, 2 * call - 1);
  const float4* slots = reinterpret_cast<const float4*>(args.scratch + sizeof(Control));
  float4* stream = reinterpret_cast<float4*>(args.stream);
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    float squares = 0;
    for (int i = threadIdx.x; i < vectors; i += kThreads) {
      const std::int64_t at = row * vectors + i;
      float4 h = reinterpret_cast<const float4*>(args.residual)[at];
      for (int r = 0; r < args.world; ++r) {
        const float4 v = slots[r * all + at];
        h = {h.x + v.x, h.y + v.y, h.z + v.z, h.w + v.w};
      }
      stream[at] = h;
      squares += h.x * h.x + h.y * h.y + h.z * h.z + h.w * h.w;
    }
    atomicAdd(&total, squares);
    __syncthreads();
    const float factor = 1 / sqrtf(total / args.hidden + 1e-5f);
    for (int i = threadIdx.x; i < vectors; i += kThreads) {
      const std::int64_t at = row * vectors + i;
      const float4 h = stream[at], w = reinterpret_cast<const float4*>(args.weight)[i];
      const float4 v = {w.x * h.x * factor, w.y * h.y * factor, w.z * h.z * factor,
                        w.w * h.w * factor};
      for (int r = 0; r < args.world; ++r) {
        reinterpret_cast<float4*>(args.norm_peers[r])[args.rank * all + at] = v;
      }
    }
    __syncthreads();
  }
  Meet(args, 2 * call);
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = static_cast<int>(args.rows < kMaxBlocks ? args.rows : kMaxBlocks);
  ScatterNormGather<<<blocks, kThreads, 0, stream>>>(args);
}
