// Direct push: every rank tells all others its counts, which also says "I have entered, my `out`
// may be written". From the whole table of counts a rank computes where its rows belong at each
// peer, and writes them there in place; nothing is staged.
//
// CTAs are (peer, part), of one warp: a part is a slice of the rows for one peer. Bulk copies move
// the bytes, by one thread per CTA, through a ring of stages in shared memory: large packets on the
// link, and the first stages load while the peers are still coming.
//
// Back to back: `calls` and all flags only grow. A CTA ends when the same part of its peer's rows
// is here, so a rank leaves when everything is. Tables of counts alternate between two places: who
// writes the table of call k+2 has seen the peer in call k+1, hence out of call k.
constexpr int kParts = 4;
constexpr int kStages = 4;
constexpr int kStageBytes = 16384;

struct Board {
  std::uint64_t calls[kMaxRanks * kParts];       // by CTA of this rank: calls it has finished
  std::uint64_t done[kMaxRanks][kParts];         // by peer and part: the call whose rows are here
  std::uint64_t table[2][kMaxRanks][kMaxRanks];  // by source and destination: call, rows
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}

__device__ std::uint32_t Shared(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}

// A ring of stages between this rank's rows and a peer's. One thread uses it.
struct Ring {
  std::uint8_t* stages;
  std::uint64_t* full;
  const std::uint8_t* from;
  std::int64_t bytes;

  __device__ std::int64_t chunks() const { return (bytes + kStageBytes - 1) / kStageBytes; }
  __device__ std::uint32_t Size(std::int64_t chunk) const {
    const std::int64_t rest = bytes - chunk * kStageBytes;
    return static_cast<std::uint32_t>(rest < kStageBytes ? rest : kStageBytes);
  }
  __device__ void Init() {
    for (int i = 0; i < kStages; ++i)
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(Shared(full + i)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __device__ void Load(std::int64_t chunk) {
    const int stage = static_cast<int>(chunk % kStages);
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Shared(full + stage)),
                 "r"(Size(chunk))
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(Shared(stages + stage * kStageBytes)),
        "l"(from + chunk * kStageBytes), "r"(Size(chunk)), "r"(Shared(full + stage))
        : "memory");
  }
  __device__ void Await(std::int64_t chunk) {
    const int stage = static_cast<int>(chunk % kStages);
    const std::uint32_t parity = static_cast<std::uint32_t>(chunk / kStages & 1);
    std::uint32_t ready = 0;
    while (ready == 0)
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
          : "=r"(ready)
          : "r"(Shared(full + stage)), "r"(parity)
          : "memory");
  }
  __device__ void Store(std::int64_t chunk, std::uint8_t* to) {
    const int stage = static_cast<int>(chunk % kStages);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     to + chunk * kStageBytes),
                 "r"(Shared(stages + stage * kStageBytes)), "r"(Size(chunk))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  }
};

__global__ void Exchange(Args args) {
  extern __shared__ __align__(128) std::uint8_t stages[];
  __shared__ __align__(8) std::uint64_t full[kStages];
  __shared__ std::int64_t mine_to[kMaxRanks];  // rows of this rank for each destination
  __shared__ std::int64_t to_peer[kMaxRanks];  // rows of each source for `peer`
  const int peer = blockIdx.x / kParts, part = blockIdx.x % kParts;
  const int rank = args.rank, world = args.world, lane = threadIdx.x;
  const std::int64_t row_bytes = args.quads * 16;
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;  //@epoch

  // Tell the peer all of this rank's counts, each beside the number of the call: no second flag.
  if (lane < world) {
    mine_to[lane] = args.counts[lane];
    std::uint64_t* word = &BoardOf(args, peer)->table[call % 2][rank][lane];
    if (part == 0) StoreReleaseSys(word, call << 32 | mine_to[lane]);  //@publish
  }
  __syncwarp();  //@own

  // This CTA's slice of the rows for `peer`, and its first stages. What the peer has no room for is
  // not known yet.
  std::int64_t first = 0;
  for (int i = 0; i < peer; ++i) first += mine_to[i];  //@first
  const std::int64_t begin = mine_to[peer] * part / kParts;
  const std::int64_t end = mine_to[peer] * (part + 1) / kParts;  //@slice
  Ring ring{stages, full,
            reinterpret_cast<const std::uint8_t*>(args.in) + (first + begin) * row_bytes,
            (end - begin) * row_bytes};
  std::int64_t loaded = 0;
  if (lane == 0) {
    ring.Init();
    while (loaded < ring.chunks() && loaded < kStages) ring.Load(loaded++);
  }

  // Where this rank's rows begin at the peer depends on those of lower ranks; and whose counts are
  // here has entered the call.
  if (lane < world) {
    std::uint64_t value;
    do {
      value = LoadAcquireSys(&mine->table[call % 2][lane][peer]);  //@look
    } while (value >> 32 < call);  //@enter
    to_peer[lane] = static_cast<std::uint32_t>(value);
  }
  __syncwarp();  //@known

  if (lane == 0) {
    std::int64_t place = begin;
    for (int i = 0; i < rank; ++i) place += to_peer[i];  //@place
    const std::int64_t fit = max(args.room - place, 0l);
    if (end - begin > fit) ring.bytes = fit * row_bytes;  //@room
    std::uint8_t* to = reinterpret_cast<std::uint8_t*>(args.out_peers[peer]) + place * row_bytes;
    const std::int64_t chunks = ring.chunks();
    for (std::int64_t i = 0; i < chunks; ++i) {
      ring.Await(i);  //@loaded
      ring.Store(i, to);
      // The stage of the chunk before is free when it has been read.
      if (i > 0 && loaded < chunks) {
        asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");  //@reuse
        ring.Load(loaded++);
      }
    }
    for (std::int64_t i = chunks; i < loaded; ++i) ring.Await(i);  // those there was no room for
    if (peer == rank && part == 0) {
      std::int64_t left = args.room;
      for (int i = 0; i < world; ++i) {
        const std::int64_t rows = min(to_peer[i], left);
        args.arrived[i] = static_cast<std::int32_t>(rows);
        left -= rows;
      }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");       //@complete
    StoreReleaseSys(&BoardOf(args, peer)->done[rank][part], call);  //@done
    while (LoadAcquireSys(&mine->done[peer][part]) < call) {        //@wait
    }
    mine->calls[blockIdx.x] = call;  //@advance
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaFuncSetAttribute(Exchange, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       kStages * kStageBytes);
  Exchange<<<args.world * kParts, 32, kStages * kStageBytes, stream>>>(args);
}
