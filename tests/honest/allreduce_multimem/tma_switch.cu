// design: bulk copies stage the input and bring the sums home, the switch adds up and spreads in between
//
// Whole vectors go in -> shared -> scratch and scratch -> shared -> out; the last one, if it is not whole,
// goes by ordinary accesses. Where bulk copies and ordinary or multicast accesses meet in the same bytes
// stand fence.proxy.async and fence.proxy.alias.

constexpr int kMaxBlocks = 64, kThreads = 256, kTile = 256;  // vectors of eight elements

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t arrived[kMaxBlocks];
};

__device__ std::uint32_t Shared(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void FenceProxies() {
  asm volatile("fence.proxy.async;" ::: "memory");
  asm volatile("fence.proxy.alias;" ::: "memory");
}

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  const std::uint32_t* mine = &reinterpret_cast<Control*>(args.scratch)->arrived[blockIdx.x];
  std::uint32_t* all = &reinterpret_cast<Control*>(args.scratch_multicast)->arrived[blockIdx.x];
  FenceProxies();
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("multimem.red.release.sys.global.add.u32 [%0], 1;" ::"l"(all) : "memory");
    FenceProxies();
    std::uint32_t arrived;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(arrived) : "l"(mine) : "memory");
    } while (std::int32_t(arrived - args.world * meeting) < 0);
  }
  __syncthreads();
  FenceProxies();
}

// By one thread: `count` vectors from global memory through `tile` to other global memory.
__device__ void Carry(uint4* tile, std::uint64_t* barrier, std::uint32_t& parity, const void* from,
                      void* to, std::int64_t count) {
  const std::uint32_t bytes = count * sizeof(uint4);
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // the tile is free again
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Shared(barrier)),
               "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(Shared(tile)), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(Shared(barrier))
      : "memory");
  std::uint32_t done;
  do {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(Shared(barrier)), "r"(parity)
        : "memory");
  } while (!done);
  parity ^= 1;
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(Shared(tile)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ std::int64_t Clip(std::int64_t at, std::int64_t count, std::int64_t end) {
  if (at >= end) return 0;
  return at + count < end ? count : end - at;
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  __shared__ alignas(128) uint4 tile[kTile];
  __shared__ alignas(8) std::uint64_t barrier;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int me = threadIdx.x, world = args.world;
  const std::int64_t vectors = (args.n + 7) / 8, whole = args.n / 8;
  const std::int64_t slice = (vectors + world - 1) / world, tiles = (slice + kTile - 1) / kTile;
  const std::int64_t inputs = sizeof(Control), sums = inputs + vectors * sizeof(uint4);
  const std::uint16_t* in = reinterpret_cast<const std::uint16_t*>(args.in);
  std::uint16_t* out = reinterpret_cast<std::uint16_t*>(args.out);
  uint4* staged = reinterpret_cast<uint4*>(args.scratch + inputs);
  std::uint32_t parity = 0;

  if (me == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Shared(&barrier)) : "memory");
    FenceProxies();
    for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
      for (int r = 0; r < world; ++r) {
        const std::int64_t at = r * slice + t * kTile, length = Clip(t * kTile, kTile, slice);
        const std::int64_t part = Clip(at, length, whole);
        if (part > 0) Carry(tile, &barrier, parity, in + 8 * at, staged + at, part);
        if (part < Clip(at, length, vectors)) {
          std::uint16_t* rest = reinterpret_cast<std::uint16_t*>(staged + at + part);
          for (int k = 0; k < 8; ++k) rest[k] = k < args.n % 8 ? in[8 * whole + k] : 0;
        }
      }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
  Meet(args, 2 * call - 1);

  for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const std::int64_t i = t * kTile + me, at = args.rank * slice + i;
    if (i >= slice || at >= vectors) continue;
    const uint4* from = reinterpret_cast<const uint4*>(args.scratch_multicast + inputs) + at;
    uint4* to = reinterpret_cast<uint4*>(args.scratch_multicast + sums) + at;
    uint4 v;
    asm volatile(
        "multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(from)
        : "memory");
    asm volatile("multimem.st.relaxed.sys.global.v4.bf16x2 [%0], {%1, %2, %3, %4};" ::"l"(to),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
  }
  Meet(args, 2 * call);

  if (me == 0) {
    uint4* summed = reinterpret_cast<uint4*>(args.scratch + sums);
    for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
      for (int r = 0; r < world; ++r) {
        const std::int64_t at = r * slice + t * kTile, length = Clip(t * kTile, kTile, slice);
        const std::int64_t part = Clip(at, length, whole);
        if (part > 0) Carry(tile, &barrier, parity, summed + at, out + 8 * at, part);
        if (part < Clip(at, length, vectors)) {
          const std::uint16_t* rest = reinterpret_cast<const std::uint16_t*>(summed + at + part);
          for (int k = 0; k < args.n % 8; ++k) out[8 * whole + k] = rest[k];
        }
      }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    mine->calls[blockIdx.x] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t slice = ((args.n + 7) / 8 + args.world - 1) / args.world;
  const std::int64_t tiles = (slice + kTile - 1) / kTile;
  const int blocks = tiles < kMaxBlocks ? tiles : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
