// design: peers pull staged tiles by bulk copies into shared memory, two stages of mbarriers, two staging buffers in turn
//
// Staging is done by ordinary stores, so every writer has fence.proxy.async before the flag, and the
// reader has one behind its acquire. A tile is 64 vectors of four elements.

constexpr int kMaxBlocks = 64, kThreads = 64, kTile = 64, kStages = 2;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t staged[kMaxBlocks][kMaxRanks];
};

__device__ std::uint32_t Shared(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

__device__ void FenceAsync() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void Fetch(float4* to, const float4* from, std::uint32_t bytes, std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(Shared(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(Shared(barrier))
      : "memory");
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

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  __shared__ alignas(128) float4 tiles[kStages][kMaxRanks][kTile];
  __shared__ alignas(8) std::uint64_t full[kStages];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t vectors = (args.n + 3) / 4, count = (vectors + kTile - 1) / kTile;
  const std::int64_t buffer = sizeof(Control) + (call & 1) * vectors * sizeof(float4);
  const int me = threadIdx.x;

  if (me == 0) {
    for (int s = 0; s < kStages; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Shared(&full[s])) : "memory");
    }
    FenceAsync();  // the copies' completions must find the barriers
  }
  float4* staging = reinterpret_cast<float4*>(args.scratch + buffer);
  for (std::int64_t t = blockIdx.x; t < count; t += gridDim.x) {
    const std::int64_t i = t * kTile + me;
    if (i >= vectors) continue;
    float4 v = {0, 0, 0, 0};
    if (4 * i + 4 <= args.n) {
      v = reinterpret_cast<const float4*>(args.in)[i];
    } else {
      v.x = args.in[4 * i];
      if (4 * i + 1 < args.n) v.y = args.in[4 * i + 1];
      if (4 * i + 2 < args.n) v.z = args.in[4 * i + 2];
    }
    staging[i] = v;
  }
  FenceAsync();
  __syncthreads();
  if (me < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[me]);
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&peer->staged[blockIdx.x][args.rank]),
                 "r"(call)
                 : "memory");
    std::uint32_t staged;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(staged)
                   : "l"(&mine->staged[blockIdx.x][me])
                   : "memory");
    } while (std::int32_t(staged - call) < 0);
    FenceAsync();
  }
  __syncthreads();

  // Thread 0 keeps up to kStages tiles on their way.
  auto issue = [&](std::int64_t t, int stage) {
    const std::int64_t first = t * kTile, left = vectors - first;
    const std::uint32_t bytes = (left < kTile ? left : kTile) * sizeof(float4);
    Expect(&full[stage], bytes * args.world);
    for (int step = 0; step < args.world; ++step) {
      const int r = (args.rank + step) % args.world;
      Fetch(tiles[stage][r], reinterpret_cast<const float4*>(args.scratch_peers[r] + buffer) + first,
            bytes, &full[stage]);
    }
  };
  if (me == 0) {
    FenceAsync();
    for (int s = 0; s < kStages; ++s) {
      const std::int64_t t = blockIdx.x + std::int64_t{s} * gridDim.x;
      if (t < count) issue(t, s);
    }
  }
  int stage = 0;
  std::uint32_t parity = 0;
  for (std::int64_t t = blockIdx.x; t < count; t += gridDim.x) {
    Await(&full[stage], parity);
    const std::int64_t i = t * kTile + me;
    if (i < vectors) {
      float4 sum = tiles[stage][0][me];
      for (int r = 1; r < args.world; ++r) {
        const float4 v = tiles[stage][r][me];
        sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
      }
      if (4 * i + 4 <= args.n) {
        reinterpret_cast<float4*>(args.out)[i] = sum;
      } else {
        args.out[4 * i] = sum.x;
        if (4 * i + 1 < args.n) args.out[4 * i + 1] = sum.y;
        if (4 * i + 2 < args.n) args.out[4 * i + 2] = sum.z;
      }
    }
    __syncthreads();  // all have read the stage
    const std::int64_t next = t + std::int64_t{kStages} * gridDim.x;
    if (me == 0 && next < count) issue(next, stage);
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
  if (me == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = ((args.n + 3) / 4 + kTile - 1) / kTile;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
