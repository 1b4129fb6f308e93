// design: scattering warps and summing warps of one block work side by side on chunks, with named barriers and a counter of chunks
//
// Scattering warps never wait for anybody: slots of the last call are free when it ends. Summing warps
// take chunk c when all peers have told of it. The number of chunks of a block is the same in every
// call, so a count over all calls tells which chunk of which call is there.

constexpr int kMaxBlocks = 64, kGroup = 128, kChunk = 64;  // vectors of a chunk, per owner

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t chunks[kMaxBlocks][kMaxRanks];
  std::uint32_t gathered[kMaxBlocks][kMaxRanks];
};

template <int kId>
__device__ void GroupSync() {
  asm volatile("barrier.sync %0, %1;" ::"n"(kId), "n"(kGroup) : "memory");
}
__device__ void Tell(std::uint32_t* flag, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
__device__ void Hear(const std::uint32_t* flag, std::uint32_t value) {
  std::uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  } while (std::int32_t(seen - value) < 0);
}

__global__ void __launch_bounds__(2 * kGroup) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int world = args.world, me = threadIdx.x % kGroup;
  const bool sums = threadIdx.x >= kGroup;
  const std::int64_t vectors = (args.n + 3) / 4, slice = (vectors + world - 1) / world;
  const std::int64_t all = (slice + kChunk - 1) / kChunk;
  const std::uint32_t own = (all - blockIdx.x + gridDim.x - 1) / gridDim.x;
  std::uint32_t count = (call - 1) * own;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[me % world]);

  if (!sums) {
    for (std::int64_t c = blockIdx.x; c < all; c += gridDim.x) {
      for (int k = me; k < kChunk * world; k += kGroup) {
        const int owner = (args.rank + k / kChunk) % world;
        const std::int64_t i = c * kChunk + k % kChunk, at = owner * slice + i;
        if (i >= slice || at >= vectors) continue;
        const float* in = args.in + 4 * at;
        const std::int64_t left = args.n - 4 * at;
        const float4 v = {in[0], left > 1 ? in[1] : 0, left > 2 ? in[2] : 0, left > 3 ? in[3] : 0};
        reinterpret_cast<float4*>(args.scratch_peers[owner] +
                                  sizeof(Control))[args.rank * slice + i] = v;
      }
      GroupSync<1>();
      ++count;
      if (me < world) Tell(&peer->chunks[blockIdx.x][args.rank], count);
    }
  } else {
    const float4* slots = reinterpret_cast<const float4*>(args.scratch + sizeof(Control));
    for (std::int64_t c = blockIdx.x; c < all; c += gridDim.x) {
      ++count;
      if (me < world) Hear(&mine->chunks[blockIdx.x][me], count);
      GroupSync<2>();
      const std::int64_t i = c * kChunk + me % kChunk, at = args.rank * slice + i;
      if (i >= slice || at >= vectors) continue;
      float4 sum = slots[i];
      for (int r = 1; r < world; ++r) {
        const float4 v = slots[r * slice + i];
        sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
      }
      // Two threads per vector: the one for the even places from here, the other for the odd ones.
      for (int step = me / kChunk; step < world; step += kGroup / kChunk) {
        float* out = args.out_peers[(args.rank + step) % world] + 4 * at;
        const std::int64_t left = args.n - 4 * at;
        if (left >= 4) {
          *reinterpret_cast<float4*>(out) = sum;
        } else {
          out[0] = sum.x;
          if (left > 1) out[1] = sum.y;
          if (left > 2) out[2] = sum.z;
        }
      }
    }
  }
  __syncthreads();
  if (threadIdx.x < world) {
    Tell(&peer->gathered[blockIdx.x][args.rank], call);
    Hear(&mine->gathered[blockIdx.x][me], call);
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t slice = ((args.n + 3) / 4 + args.world - 1) / args.world;
  const std::int64_t chunks = (slice + kChunk - 1) / kChunk;
  const int blocks = chunks < kMaxBlocks ? chunks : kMaxBlocks;
  AllReduce<<<blocks, 2 * kGroup, 0, stream>>>(args);
}
