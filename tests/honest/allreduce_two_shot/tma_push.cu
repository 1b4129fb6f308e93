// design: both shots by bulk copies: in -> shared -> slot of the owner, slots -> shared, sums -> shared -> everybody's out
//
// Thread 0 issues all copies and waits for them by mbarriers and groups; a copy's completion comes to
// the thread that tells a peer through the block's barrier. Sums are written to shared memory by
// ordinary stores, so fence.proxy.async stands before the copies that read them. The last vector, if
// it is not whole, is carried by ordinary stores, since bulk copies move sixteen bytes at least.

constexpr int kMaxBlocks = 64, kThreads = 128, kTile = kThreads;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t scattered[kMaxBlocks][kMaxRanks];
  std::uint32_t gathered[kMaxBlocks][kMaxRanks];
};

__device__ std::uint32_t Shared(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void FenceAsync() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ void Fetch(void* to, const void* from, std::uint32_t bytes, std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(Shared(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(Shared(barrier))
      : "memory");
}
__device__ void Put(void* to, const void* from, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(Shared(from)), "r"(bytes)
               : "memory");
}
__device__ void Commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ void AwaitSourcesRead() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ void AwaitWritten() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
__device__ void Init(std::uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Shared(barrier)) : "memory");
}
__device__ void Expect(std::uint64_t* barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Shared(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ void Await(std::uint64_t* barrier, std::uint32_t parity) {
  std::uint32_t done;
  do {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(Shared(barrier)), "r"(parity)
        : "memory");
  } while (!done);
}

__device__ float4 Input(const Args& args, std::int64_t i) {
  const float* in = args.in + 4 * i;
  const std::int64_t left = args.n - 4 * i;
  return {in[0], left > 1 ? in[1] : 0, left > 2 ? in[2] : 0, left > 3 ? in[3] : 0};
}

// How many of `count` vectors from `at` on are below `end`.
__device__ std::int64_t Clip(std::int64_t at, std::int64_t count, std::int64_t end) {
  if (at >= end) return 0;
  return at + count < end ? count : end - at;
}

__device__ void Meet(std::uint32_t* told, const std::uint32_t* heard, std::uint32_t call) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(told), "r"(call) : "memory");
  std::uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(heard) : "memory");
  } while (std::int32_t(seen - call) < 0);
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  __shared__ alignas(128) float4 tile[kMaxRanks][kTile];
  __shared__ alignas(128) float4 sums[kTile];
  __shared__ alignas(8) std::uint64_t loaded, arrived;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int me = threadIdx.x, world = args.world;
  const std::int64_t vectors = (args.n + 3) / 4, whole = args.n / 4;
  const std::int64_t slice = (vectors + world - 1) / world, tiles = (slice + kTile - 1) / kTile;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[me % world]);

  if (me == 0) {
    Init(&loaded);
    Init(&arrived);
    FenceAsync();
    std::uint32_t parity = 0;
    for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
      const std::int64_t length = Clip(t * kTile, kTile, slice);
      AwaitSourcesRead();  // of the tile before
      std::uint32_t bytes = 0;
      for (int p = 0; p < world; ++p) {
        if (p != args.rank) bytes += 16 * Clip(p * slice + t * kTile, length, whole);
      }
      if (bytes > 0) {
        Expect(&loaded, bytes);
        for (int p = 0; p < world; ++p) {
          const std::int64_t at = p * slice + t * kTile, part = Clip(at, length, whole);
          if (p != args.rank && part > 0) Fetch(tile[p], args.in + 4 * at, 16 * part, &loaded);
        }
        Await(&loaded, parity);
        parity ^= 1;
      }
      for (int step = 1; step < world; ++step) {
        const int p = (args.rank + step) % world;
        const std::int64_t at = p * slice + t * kTile, part = Clip(at, length, whole);
        float4* slots = reinterpret_cast<float4*>(args.scratch_peers[p] + sizeof(Control));
        slots += args.rank * slice + t * kTile;
        if (part > 0) Put(slots, tile[p], 16 * part);
        if (part < Clip(at, length, vectors)) slots[part] = Input(args, at + part);
      }
      Commit();
    }
    AwaitWritten();
    FenceAsync();  // the odd vector is read by a copy, too
  }
  __syncthreads();
  if (me < world) {
    Meet(&peer->scattered[blockIdx.x][args.rank], &mine->scattered[blockIdx.x][me], call);
    FenceAsync();
  }
  __syncthreads();

  std::uint32_t parity = 0;
  for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const std::int64_t at = args.rank * slice + t * kTile;
    const std::int64_t length = Clip(at, Clip(t * kTile, kTile, slice), vectors);
    const std::int64_t part = Clip(at, length, whole);
    if (length == 0) break;
    if (me == 0) {
      FenceAsync();
      Expect(&arrived, 16 * length * (world - 1));
      for (int step = 1; step < world; ++step) {
        const int r = (args.rank + step) % world;
        Fetch(tile[r],
              reinterpret_cast<float4*>(args.scratch + sizeof(Control)) + r * slice + t * kTile,
              16 * length, &arrived);
      }
    }
    Await(&arrived, parity);
    parity ^= 1;
    if (me < length) {
      float4 sum = Input(args, at + me);
      for (int r = 0; r < world; ++r) {
        if (r == args.rank) continue;
        const float4 v = tile[r][me];
        sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
      }
      if (me < part) {
        sums[me] = sum;
      } else {
        for (int p = 0; p < world; ++p) {
          float* out = args.out_peers[p] + 4 * (at + me);
          out[0] = sum.x;
          if (args.n % 4 > 1) out[1] = sum.y;
          if (args.n % 4 > 2) out[2] = sum.z;
        }
      }
    }
    FenceAsync();
    __syncthreads();
    if (me == 0) {
      for (int step = 0; part > 0 && step < world; ++step) {
        Put(args.out_peers[(args.rank + step) % world] + 4 * at, sums, 16 * part);
      }
      Commit();
      AwaitSourcesRead();
    }
    __syncthreads();  // `sums` and `tile` may be filled again
  }
  if (me == 0) AwaitWritten();
  __syncthreads();
  if (me < world) {
    Meet(&peer->gathered[blockIdx.x][args.rank], &mine->gathered[blockIdx.x][me], call);
  }
  if (me == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t slice = ((args.n + 3) / 4 + args.world - 1) / args.world;
  const std::int64_t tiles = (slice + kTile - 1) / kTile;
  const int blocks = tiles < kMaxBlocks ? tiles : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
