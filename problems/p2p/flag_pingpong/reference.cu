// Token and step number travel as one 64-bit word. A word arrives whole, so whoever sees the number
// has the token: no fence, no second trip. The number counts the steps of all calls and tells old
// words from new ones; memory that was never written, number 0, is the state before the first step.
//
// Rank 1 sends the last token of a call, too. Rank 0 does not need it, but waits for it before the
// first step of the next call: then its word at rank 1 was read and may be overwritten.
struct Box {
  std::uint64_t word;    // written by the peer: step number, token
  std::uint32_t before;  // own: steps of all earlier calls
};

__device__ inline void Send(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");  //@send
}

__device__ inline std::uint64_t Look(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");  //@look
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
    std::uint64_t word;
    do {
      word = Look(&mine->word);
    } while (word >> 32 != step);  //@wait
    const bool first = args.rank == 0 && i == 0;
    const std::uint32_t token = first ? 0 : static_cast<std::uint32_t>(word);
    // The sum is also where the lanes meet: after it all have read the word.
    const std::uint32_t next = __reduce_add_sync(~0u, Mix(token + key));
    if (lane == 0) {
      Send(&theirs->word, std::uint64_t{step + 1} << 32 | next);  //@publish
      args.out[i] = next;
    }
    step += 2;
  }
  __syncwarp();  // all have read it
  if (lane == 0) mine->before = step - args.rank;  //@epoch
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Bounce<<<1, 32, 0, stream>>>(args);
}
