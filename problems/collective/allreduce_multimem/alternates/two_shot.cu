// Every rank stages its input in its part of the multicast memory. Of each slice one rank lets the
// switch add up all ranks' parts (multimem.ld_reduce) and spread the sum to all of them
// (multimem.st); everybody then copies the sums to `out`. A vector is sixteen bytes, eight
// elements; block b of every rank has the same vectors of each slice, so it meets the blocks b
// only.
//
// Staged inputs and sums exist once. The second meeting says that all have read the inputs, so the
// next call may overwrite them. Sums of the next call come after its first meeting, to which this
// rank comes only when it has copied these.
//
// A meeting adds one to a counter on all devices at once; each waits for its own. Counters are
// never reset: meeting m is complete at world * m, and nobody can come to meeting m + 1 before.
//
// The same memory is used by its own address and by the multicast address; fence.proxy.alias stands
// between the two.

constexpr int kMaxBlocks = 64;
constexpr int kMaxThreads = 512;

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t calls[kMaxBlocks];    // that this block has completed
  std::uint32_t arrived[kMaxBlocks];  // of all ranks at all meetings of this block
};

__device__ void FenceAliases() { asm volatile("fence.proxy.alias;" ::: "memory"); }

// Every thread of the block on every rank: what was written before can be read after it.
__device__ void Meet(const Args& args, std::uint32_t meeting) {
  const std::uint32_t* mine = &reinterpret_cast<Control*>(args.scratch)->arrived[blockIdx.x];
  std::uint32_t* all = &reinterpret_cast<Control*>(args.scratch_multicast)->arrived[blockIdx.x];
  FenceAliases();   //@alias_before
  __syncthreads();  //@before_arrive
  if (threadIdx.x == 0) {
    asm volatile("multimem.red.release.sys.global.add.u32 [%0], 1;" ::"l"(all)
                 : "memory");  //@arrive
    FenceAliases();
    const std::uint32_t complete = args.world * meeting;  //@complete
    std::uint32_t arrived;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(arrived)
                   : "l"(mine)
                   : "memory");  //@observe
    } while (std::int32_t(arrived - complete) < 0);  //@wait
  }
  __syncthreads();  //@after_wait
  FenceAliases();   //@alias_after
}

// The sum over all ranks, added up in fp32 and rounded once.
__device__ uint4 LoadReduce(const uint4* all) {
  uint4 v;
  asm volatile(
      "multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(all)
      : "memory");
  return v;
}

__device__ void StoreAll(uint4* all, uint4 v) {
  asm volatile("multimem.st.relaxed.sys.global.v4.bf16x2 [%0], {%1, %2, %3, %4};" ::"l"(all),
               "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

// Vector i, of whose elements only those below n exist.
__device__ uint4 Load(const std::uint16_t* in, int n, int i) {
  if (8 * i + 8 <= n) return reinterpret_cast<const uint4*>(in)[i];  //@tail_load
  std::uint32_t word[4] = {};
  for (int k = 0; 8 * i + k < n; ++k) word[k / 2] |= std::uint32_t(in[8 * i + k]) << 16 * (k % 2);
  return {word[0], word[1], word[2], word[3]};
}

__device__ void Store(std::uint16_t* out, int n, int i, uint4 v) {
  if (8 * i + 8 <= n) {  //@tail_store
    reinterpret_cast<uint4*>(out)[i] = v;
    return;
  }
  const std::uint32_t word[4] = {v.x, v.y, v.z, v.w};
  for (int k = 0; 8 * i + k < n; ++k) out[8 * i + k] = word[k / 2] >> 16 * (k % 2);  //@last
}

__global__ void __launch_bounds__(kMaxThreads) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int n = static_cast<int>(args.n), vectors = (n + 7) / 8;
  const int slice = (vectors + args.world - 1) / args.world;  // the last one may be shorter
  const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
  const std::size_t inputs = sizeof(Control), sums = inputs + vectors * sizeof(uint4);

  uint4* staged = reinterpret_cast<uint4*>(args.scratch + inputs);
  const std::uint16_t* in = reinterpret_cast<const std::uint16_t*>(args.in);
  for (int i = first; i < slice; i += stride) {
    uint4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
      if (r * slice + i < vectors) v[r] = Load(in, n, r * slice + i);
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r * slice + i < vectors) staged[r * slice + i] = v[r];  //@stage
    }
  }
  Meet(args, 2 * call - 1);  //@first

  const uint4* all_inputs = reinterpret_cast<const uint4*>(args.scratch_multicast + inputs);
  uint4* all_sums = reinterpret_cast<uint4*>(args.scratch_multicast + sums);
  for (int i = first; i < slice; i += stride) {
    const int at = args.rank * slice + i;
    if (at < vectors) StoreAll(&all_sums[at], LoadReduce(&all_inputs[at]));  //@reduce
  }
  Meet(args, 2 * call);  //@second

  const uint4* summed = reinterpret_cast<const uint4*>(args.scratch + sums);
  std::uint16_t* out = reinterpret_cast<std::uint16_t*>(args.out);
  for (int i = first; i < slice; i += stride) {
    uint4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r * slice + i < vectors) v[r] = summed[r * slice + i];
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r * slice + i < vectors) Store(out, n, r * slice + i, v[r]);
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int slice = static_cast<int>(((args.n + 7) / 8 + args.world - 1) / args.world);
  const int threads = slice > 256 * kMaxBlocks ? kMaxThreads : slice > 128 * kMaxBlocks ? 256 : 128;
  const int needed = (slice + threads - 1) / threads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, threads, 0, stream>>>(args);
}
