// A block has whole rows of its rank. It loads them from the `in` of all ranks, adds them up,
// normalises them in shared memory, and one bulk copy per peer takes each row from there to its
// place in the peer's `norm`, in large packets, while the block is at its next row.
//
// Block b deals with block b of every peer. A peer's `in` and `norm` are open from its entry flag
// on; it cannot leave before our last flag, which stands behind our loads and our copies. Flags
// hold the number of the call and only grow, so nothing is ever reset. A row in shared memory is
// overwritten two rows later, when the copies out of it have read it.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 32, kMaxThreads = 256, kMaxVectors = 2048 / 4;

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has entered
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by peer: the last call whose rows are here
};

__device__ float4 Add(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
__device__ float Dot(float4 a) { return a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w; }

// Over the threads of the block; every thread gets it.
__device__ float BlockSum(float x) {
  __shared__ float of_warp[kMaxThreads / 32];
  const int lane = threadIdx.x % 32;
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
  if (lane == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();  //@squared
  x = lane < blockDim.x / 32 ? of_warp[lane] : 0;
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
  return x;
}

__device__ void Store(float4* to, const float4* row, int bytes) {
  const auto from = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from),
               "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__global__ void __launch_bounds__(kMaxThreads) ScatterNormGather(Args args) {
  __shared__ alignas(128) float4 buffers[2][kMaxVectors];
  __shared__ float4 weights[kMaxVectors];
  const int block = blockIdx.x, thread = threadIdx.x, world = args.world;
  const int hidden = static_cast<int>(args.hidden), vectors = hidden / 4;
  const std::int64_t rows = args.rows;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread % world]);
  float4* norm = reinterpret_cast<float4*>(args.norm_peers[thread % world]);
  const float4* residual = reinterpret_cast<const float4*>(args.residual);
  const float4* weight = reinterpret_cast<const float4*>(args.weight);
  float4* stream = reinterpret_cast<float4*>(args.stream);
  const std::uint32_t call = mine->calls[block] + 1;  //@epoch

  if (thread < world) StoreReleaseSys(&peer->entered[block][args.rank], call);  //@enter
  const float inverse = 1.0f / hidden;
  for (int i = thread; i < vectors; i += blockDim.x) weights[i] = weight[i];
  if (thread < world) WaitAcquireSys(&mine->entered[block][thread], call);  //@entered
  __syncthreads();                                                          //@open
  if (thread == 0) mine->calls[block] = call;                               //@advance
  int turn = 0;
  for (std::int64_t row = block; row < rows; row += gridDim.x, turn ^= 1) {
    const std::int64_t place = (args.rank * rows + row) * vectors;  // of the sequence
    float4* buffer = buffers[turn];
    float squares = 0;
    for (int i = thread; i < vectors; i += blockDim.x) {
      float4 h = residual[row * vectors + i], v[kMaxRanks];
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
        if (r < world) v[r] = reinterpret_cast<const float4*>(args.in_peers[r])[place + i];
      }
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (r < world) h = Add(h, v[r]);
      }
      squares += Dot(h);
      stream[row * vectors + i] = h;
      buffer[i] = h;
    }
    const float factor = rsqrtf(BlockSum(squares) * inverse + 1e-5f);
    for (int i = thread; i < vectors; i += blockDim.x) {
      const float4 h = buffer[i], w = weights[i];
      buffer[i] = {w.x * (h.x * factor), w.y * (h.y * factor), w.z * (h.z * factor),
                   w.w * (h.w * factor)};
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  //@proxy
    // The other buffer is free when the copies of the row before have read it.
    if (thread < world) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  //@reuse
    __syncthreads();                                                                    //@made
    if (thread < world) Store(norm + place, buffer, hidden * 4);
  }
  if (thread < world) {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  //@complete
    StoreReleaseSys(&peer->arrived[block][args.rank], call);   //@publish
    WaitAcquireSys(&mine->arrived[block][thread], call);       //@wait
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.hidden / 4 + 31) / 32 * 32);
  const int threads = needed < kMaxThreads ? needed : kMaxThreads;
  const int blocks = static_cast<int>(args.rows < kMaxBlocks ? args.rows : kMaxBlocks);
  ScatterNormGather<<<blocks, threads, 0, stream>>>(args);
}
