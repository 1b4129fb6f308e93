// tries: looks by compare-and-swap, in the hope that it sees a word before the link has brought it
// rows: T
// verdict: pass
// cases: all
// problem: flag_pingpong
// at most: reference
// A correct program: an atomic may look at a word as well as a load. It must not see it earlier.
struct Box {
  std::uint64_t word;    // written by the peer: step number, token
  std::uint32_t before;  // own: steps of all earlier calls
};

__device__ inline void Send(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

__device__ inline std::uint64_t Look(std::uint64_t* word, std::uint64_t guess) {
  std::uint64_t value;
  asm volatile("atom.relaxed.sys.global.cas.b64 %0, [%1], %2, %2;"
               : "=l"(value)
               : "l"(word), "l"(guess)
               : "memory");
  return value;
}

// One warp: each lane has one key of a row. All lanes poll, which saves handing the word around.
__global__ void Bounce(Args args) {
  Box* mine = reinterpret_cast<Box*>(args.scratch);
  Box* theirs = reinterpret_cast<Box*>(args.scratch_peers[1 - args.rank]);
  const std::uint32_t lane = threadIdx.x;
  std::uint32_t step = mine->before + args.rank;
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    const std::uint32_t key = args.keys[i * 32 + lane];  // on its way while we wait
    std::uint64_t word = 0;
    do {
      word = __shfl_sync(~0u, lane == 0 ? Look(&mine->word, word) : 0, 0);
    } while (word >> 32 != step);
    const bool first = args.rank == 0 && i == 0;
    const std::uint32_t token = first ? 0 : static_cast<std::uint32_t>(word);
    // The sum is also where the lanes meet: after it all have read the word.
    const std::uint32_t next = __reduce_add_sync(~0u, Mix(token + key));
    if (lane == 0) {
      Send(&theirs->word, std::uint64_t{step + 1} << 32 | next);
      args.out[i] = next;
    }
    step += 2;
  }
  __syncwarp();  // all have read it
  if (lane == 0) mine->before = step - args.rank;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Bounce<<<1, 32, 0, stream>>>(args);
}
