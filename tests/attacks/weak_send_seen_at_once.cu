// tries: sends by a weak store, which the model shows to everybody at once, and polls strong
// rows: G
// verdict: race
// cases: all
// problem: flag_pingpong
struct alignas(16) Box {
  std::uint64_t word, rest;  // step number and token
  std::uint32_t before;      // own: steps of all earlier calls
};
__device__ inline void Send(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.weak.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ inline std::uint64_t Look(std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
// One lane polls and hands the word around, since its look may change it.
__global__ void Bounce(Args args) {
  Box* mine = reinterpret_cast<Box*>(args.scratch);
  Box* theirs = reinterpret_cast<Box*>(args.scratch_peers[1 - args.rank]);
  const std::uint32_t lane = threadIdx.x;
  std::uint32_t step = mine->before + args.rank;
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    const std::uint32_t key = args.keys[i * 32 + lane];
    std::uint64_t word;
    do {
      word = lane == 0 ? Look(&mine->word) : 0;
      word = __shfl_sync(~0u, word, 0);
    } while (word >> 32 != step);
    const bool first = args.rank == 0 && i == 0;
    const std::uint32_t token = first ? 0 : static_cast<std::uint32_t>(word);
    const std::uint32_t next = __reduce_add_sync(~0u, Mix(token + key));
    if (lane == 0) {
      Send(&theirs->word, std::uint64_t{step + 1} << 32 | next);
      args.out[i] = next;
    }
    step += 2;
  }
  __syncwarp();
  if (lane == 0) mine->before = step - args.rank;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Bounce<<<1, 32, 0, stream>>>(args);
}
