// design: shot one is a bulk reduction (cp.reduce.async.bulk) from shared memory into the owner's accumulator, shot two ordinary stores
//
// The owner clears its accumulator by ordinary stores before it tells of its sums; they and the next call's
// reductions are in different proxies, so fence.proxy.async stands behind the clearing and again before the
// reductions. The last vector, if it is not whole, is added by ordinary reductions of all ranks: each
// byte has one kind of access. Bulk reductions of several devices go further than PTX promises.

constexpr int kMaxBlocks = 64, kThreads = 128, kTile = 128;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t added[kMaxBlocks][kMaxRanks], spread[kMaxBlocks][kMaxRanks];
};

__device__ std::uint32_t Shared(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void FenceAsync() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void Meet(std::uint32_t* told, const std::uint32_t* heard, std::uint32_t call) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(told), "r"(call) : "memory");
  std::uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(heard) : "memory");
  } while (std::int32_t(seen - call) < 0);
}

__device__ std::int64_t Clip(std::int64_t at, std::int64_t count, std::int64_t end) {
  if (at >= end) return 0;
  return at + count < end ? count : end - at;
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  __shared__ alignas(128) float4 tile[kMaxRanks][kTile];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int me = threadIdx.x, world = args.world;
  const std::int64_t vectors = (args.n + 3) / 4, whole = args.n / 4;
  const std::int64_t slice = (vectors + world - 1) / world, tiles = (slice + kTile - 1) / kTile;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[me % world]);

  for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const std::int64_t length = Clip(t * kTile, kTile, slice);
    for (int p = 0; p < world; ++p) {
      const std::int64_t at = p * slice + t * kTile;
      if (me < Clip(at, length, whole)) {
        tile[p][me] = reinterpret_cast<const float4*>(args.in)[at + me];
      }
    }
    FenceAsync();  // what was put into shared memory, and what peers have cleared
    __syncthreads();
    if (me == 0) {
      FenceAsync();
      for (int step = 0; step < world; ++step) {
        const int p = (args.rank + step) % world;
        const std::int64_t at = p * slice + t * kTile, part = Clip(at, length, whole);
        float4* to = reinterpret_cast<float4*>(args.scratch_peers[p] + sizeof(Control)) + t * kTile;
        if (part > 0) {
          asm volatile(
              "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(
                  __cvta_generic_to_global(to)),
              "r"(Shared(tile[p])), "r"(static_cast<std::uint32_t>(16 * part))
              : "memory");
        }
        if (part < Clip(at, length, vectors)) {
          for (int k = 0; k < args.n % 4; ++k) {
            asm volatile("red.relaxed.sys.global.add.f32 [%0], %1;" ::"l"(
                             reinterpret_cast<float*>(to + part) + k),
                         "f"(args.in[4 * whole + k])
                         : "memory");
          }
        }
      }
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();  // the tiles may be filled again
  }
  if (me == 0) {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    FenceAsync();
  }
  __syncthreads();
  if (me < world) Meet(&peer->added[blockIdx.x][args.rank], &mine->added[blockIdx.x][me], call);
  __syncthreads();
  FenceAsync();
  float4* sums = reinterpret_cast<float4*>(args.scratch + sizeof(Control));
  for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const std::int64_t i = t * kTile + me, at = args.rank * slice + i, left = args.n - 4 * at;
    if (i >= slice || at >= vectors) continue;
    const float4 sum = sums[i];
    sums[i] = {0, 0, 0, 0};
    for (int step = 0; step < world; ++step) {
      float* out = args.out_peers[(args.rank + step) % world] + 4 * at;
      if (left >= 4) {
        *reinterpret_cast<float4*>(out) = sum;
      } else {
        out[0] = sum.x;
        if (left > 1) out[1] = sum.y;
        if (left > 2) out[2] = sum.z;
      }
    }
  }
  FenceAsync();
  __syncthreads();
  if (me < world) {
    Meet(&peer->spread[blockIdx.x][args.rank], &mine->spread[blockIdx.x][me], call);
    FenceAsync();
  }
  if (me == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t slice = ((args.n + 3) / 4 + args.world - 1) / args.world;
  const std::int64_t tiles = (slice + kTile - 1) / kTile;
  const int blocks = tiles < kMaxBlocks ? tiles : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
