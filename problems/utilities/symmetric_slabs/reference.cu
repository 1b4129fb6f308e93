// Every rank gets what all want and runs all heaps itself, one thread per heap: then nobody has to
// be told of offsets. What is wanted travels in 64-bit words, four bytes beside the number of the
// call: who sees the number has the bytes, without a fence.
//
// Slots exist twice, by turns of calls. A thread sends for call k + 2 after it has all words of
// call k + 1, and who has sent one of them has ended its call k.

constexpr int kThreads = 128, kMaxBlocks = 64, kRequests = 16;

struct Board {
  std::uint32_t calls[kMaxBlocks];  // own: that each block has completed
};

struct Slot {
  ulonglong2 halves[2];  // of a heap's 16 bytes
};

__device__ Slot* SlotsOf(const Args& args, int rank, std::uint32_t call) {
  const std::int64_t world = args.world, heaps = args.heaps;
  return reinterpret_cast<Slot*>(args.scratch_peers[rank] + 65536) + call % 2 * world * heaps;
}

__device__ void Send(ulonglong2* to, std::uint32_t a, std::uint32_t b, std::uint32_t call) {
  const std::uint64_t number = std::uint64_t{call} << 32;
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(number | a),
               "l"(number | b)
               : "memory");
}

__device__ ulonglong2 Look(const ulonglong2* from) {
  ulonglong2 v;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(v.x), "=l"(v.y)
               : "l"(from)
               : "memory");
  return v;
}

// Adds up what all others want of heap h. All words are on their way before the first is needed.
__device__ void Receive(const Args& args, std::int64_t h, std::uint32_t call,
                        std::uint32_t (&sums)[4]) {
  const Slot* slots = SlotsOf(args, args.rank, call) + h;
  ulonglong2 words[kMaxRanks][2];
  bool missing;
  do {
    missing = false;
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world || r == args.rank) continue;
      words[r][0] = Look(&slots[r * args.heaps].halves[0]);
      words[r][1] = Look(&slots[r * args.heaps].halves[1]);
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world || r == args.rank) continue;
      const auto& [first, second] = words[r];
      missing |= first.x >> 32 != call || first.y >> 32 != call;
      missing |= second.x >> 32 != call || second.y >> 32 != call;
    }
  } while (missing);  //@wait
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {
    if (r >= args.world || r == args.rank) continue;
    const auto& [first, second] = words[r];
    const std::uint64_t theirs[4] = {first.x, first.y, second.x, second.y};
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[k] = __vadd4(sums[k], static_cast<std::uint32_t>(theirs[k]));
  }
}

__global__ void __launch_bounds__(kThreads) Allocate(Args args) {
  __shared__ std::uint32_t ending[kRequests][kThreads];  // by request: slabs to free before it
  std::uint32_t* calls = reinterpret_cast<Board*>(args.scratch)->calls;
  const std::uint32_t call = calls[blockIdx.x] + 1;
  const std::int64_t heaps = args.heaps;
  for (std::int64_t h = blockIdx.x * kThreads + threadIdx.x; h < heaps; h += gridDim.x * kThreads) {
    const uint4 own = reinterpret_cast<const uint4*>(args.want)[h];
    for (int step = 1; step < args.world; ++step) {
      const int to = (args.rank + step) % args.world;
      Slot* slot = SlotsOf(args, to, call) + args.rank * heaps + h;
      Send(&slot->halves[0], own.x, own.y, call);  //@send
      Send(&slot->halves[1], own.z, own.w, call);
    }
    for (int i = 0; i < kRequests; ++i) ending[i][threadIdx.x] = 0;
    std::uint32_t sums[4] = {own.x, own.y, own.z, own.w};
    Receive(args, h, call, sums);

    std::uint32_t free = ~0u, offsets[4] = {};
#pragma unroll
    for (int i = 0; i < kRequests; ++i) {
      const std::uint32_t s = sums[i / 4] >> i % 4 * 8 & 255, need = 1 + s % 8;
      const std::uint32_t end = i + 1 + s / 8 % 16;
      free |= ending[i][threadIdx.x];
      // Runs of 1, 2, 4 and 8 free slabs that begin at each place, cut off at `need`.
      std::uint32_t runs = free;
      const std::uint32_t two = min(need, 2u), four = min(need, 4u);
      runs &= runs >> (two - 1);
      runs &= runs >> (four - two);
      runs &= runs >> (need - four);
      runs &= ~0u >> (need - 1);
      const std::uint32_t offset = runs == 0 ? 255u : __ffs(static_cast<int>(runs)) - 1;
      offsets[i / 4] |= offset << i % 4 * 8;
      const std::uint32_t taken = runs == 0 ? 0 : ((1u << need) - 1) << offset;
      free &= ~taken;
      if (end < kRequests) ending[end][threadIdx.x] |= taken;
    }
    reinterpret_cast<uint4*>(args.offset)[h] = {offsets[0], offsets[1], offsets[2], offsets[3]};
  }
  __syncthreads();                                 //@finished
  if (threadIdx.x == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.heaps + kThreads - 1) / kThreads;
  Allocate<<<static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks), kThreads, 0, stream>>>(
      args);
}
