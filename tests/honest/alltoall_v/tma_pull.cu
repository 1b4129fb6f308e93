// design: TMA pull with two specialised warps per CTA: one loads a peer's rows by bulk copies, one stores them to `out`, with full and empty mbarriers between them
//
// CTAs are (source, part). A source's counts, with the number of the call, say that its `in` may be
// read. The storing warp answers when all that the CTA needs has been read; a rank leaves when all
// readers have answered.
constexpr int kParts = 4;
constexpr int kStages = 6;
constexpr std::uint32_t kStageBytes = 8192;

struct Board {
  std::uint64_t calls[kMaxRanks * kParts];       // own, by CTA: calls that have ended
  std::uint64_t read[kMaxRanks][kParts];         // by reader and part: the call it has read
  std::uint64_t table[2][kMaxRanks][kMaxRanks];  // by source and destination: call, rows
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}
__device__ std::uint32_t Shared(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}
__device__ void Init(std::uint64_t* barrier) {
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(Shared(barrier)) : "memory");
}
__device__ void AwaitPhase(std::uint64_t* barrier, std::int64_t round) {
  const std::uint32_t parity = static_cast<std::uint32_t>(round & 1);
  std::uint32_t ready = 0;
  while (ready == 0)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(ready)
        : "r"(Shared(barrier)), "r"(parity)
        : "memory");
}

__global__ void __launch_bounds__(64) Pull(Args args) {
  extern __shared__ __align__(128) std::uint8_t stages[];
  __shared__ __align__(8) std::uint64_t full[kStages], empty[kStages];
  __shared__ std::int64_t of_source[kMaxRanks];  // rows of the source for each rank
  __shared__ std::int64_t to_me[kMaxRanks];      // rows of each rank for this one
  const int source = blockIdx.x / kParts, part = blockIdx.x % kParts;
  const int rank = args.rank, world = args.world, lane = threadIdx.x % 32;
  const bool loads = threadIdx.x < 32;
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;

  if (threadIdx.x == 32) {
    for (int i = 0; i < kStages; ++i) {
      Init(full + i);
      Init(empty + i);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  // One CTA of each source tells that source all counts.
  if (loads && lane < world && part == 0) {
    StoreReleaseSys(&BoardOf(args, source)->table[call % 2][rank][lane],
                    call << 32 | static_cast<std::uint32_t>(args.counts[lane]));
  }
  if (lane < world) {
    const std::uint64_t* word =
        loads ? &mine->table[call % 2][source][lane] : &mine->table[call % 2][lane][rank];
    std::uint64_t value;
    do {
      value = LoadAcquireSys(word);
    } while (value >> 32 != call);
    (loads ? of_source : to_me)[lane] = static_cast<std::uint32_t>(value);
  }
  __syncthreads();

  const std::int64_t row_bytes = args.quads * 16, count = to_me[source];
  std::int64_t place = 0;
  for (int i = 0; i < source; ++i) place += to_me[i];
  const std::int64_t fit = max(min(count, args.room - place), 0l);
  const std::int64_t begin = fit * part / kParts, end = fit * (part + 1) / kParts;
  const std::int64_t bytes = (end - begin) * row_bytes;
  const std::int64_t chunks = (bytes + kStageBytes - 1) / kStageBytes;

  if (loads) {
    if (lane != 0) return;
    std::int64_t first = begin;
    for (int i = 0; i < rank; ++i) first += of_source[i];
    const auto* from =
        reinterpret_cast<const std::uint8_t*>(args.in_peers[source]) + first * row_bytes;
    // What was written to `in` before the source said so, for copies, too.
    asm volatile("fence.proxy.async;" ::: "memory");
    for (std::int64_t c = 0; c < chunks; ++c) {
      const int stage = static_cast<int>(c % kStages);
      const auto size =
          static_cast<std::uint32_t>(min(bytes - c * kStageBytes, std::int64_t{kStageBytes}));
      if (c >= kStages) AwaitPhase(empty + stage, c / kStages - 1);
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Shared(full + stage)),
                   "r"(size)
                   : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
          "[%3];" ::"r"(Shared(stages + stage * kStageBytes)),
          "l"(from + c * kStageBytes), "r"(size), "r"(Shared(full + stage))
          : "memory");
    }
    return;
  }

  if (lane == 0) {
    auto* to = reinterpret_cast<std::uint8_t*>(args.out) + (place + begin) * row_bytes;
    for (std::int64_t c = 0; c < chunks; ++c) {
      const int stage = static_cast<int>(c % kStages);
      const auto size =
          static_cast<std::uint32_t>(min(bytes - c * kStageBytes, std::int64_t{kStageBytes}));
      AwaitPhase(full + stage, c / kStages);
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                       to + c * kStageBytes),
                   "r"(Shared(stages + stage * kStageBytes)), "r"(size)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      // The stage of the chunk before has been read.
      if (c > 0) {
        asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(
                         Shared(empty + (c - 1) % kStages))
                     : "memory");
      }
    }
    // All of it has been read from the source: it stands in shared memory.
    StoreReleaseSys(&BoardOf(args, source)->read[rank][part], call);
    if (part == 0) args.arrived[source] = static_cast<std::int32_t>(fit);
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    while (LoadAcquireSys(&mine->read[source][part]) < call) {
    }
    mine->calls[blockIdx.x] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaFuncSetAttribute(Pull, cudaFuncAttributeMaxDynamicSharedMemorySize, kStages * kStageBytes);
  Pull<<<args.world * kParts, 64, kStages * kStageBytes, stream>>>(args);
}
