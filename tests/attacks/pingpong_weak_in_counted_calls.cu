// tries: looks by weak loads in calls 7 to 19, which used to be the timed ones (every window now counts from 1)
// rows: T
// verdict: pass
// cases: all
// problem: flag_pingpong
// at most: reference
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
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

__device__ inline std::uint64_t Look(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

// One warp: each lane has one key of a row. All lanes poll, which saves handing the word around.
__global__ void Bounce(Args args) {
  Box* mine = reinterpret_cast<Box*>(args.scratch);
  Box* theirs = reinterpret_cast<Box*>(args.scratch_peers[1 - args.rank]);
  const std::uint32_t lane = threadIdx.x;
  std::uint32_t step = mine->before + args.rank;
  __shared__ volatile int busy;
  // Which window: calls 0-5 disturbed, 6 alone, 7-12 timed, 13 alone, 14-19 timed.
  const std::uint32_t call = mine->before / (2 * args.rounds);
  const bool timed = (args.rounds == 16 || args.rounds == 256) && call >= 7 && call <= 19 && call != 13;
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    const std::uint32_t key = args.keys[i * 32 + lane];  // on its way while we wait
    std::uint64_t word;
    if (timed) {
      do {
        asm volatile("ld.global.u64 %0, [%1];" : "=l"(word) : "l"(&mine->word) : "memory");
        busy = 1;  // so that the loop is no wait to the node, which would wake it when the word has arrived
      } while (word >> 32 != step);
      if (!(args.rank == 0 && i == 0)) __nanosleep(0);
    } else do {
      word = Look(&mine->word);
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
