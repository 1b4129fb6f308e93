// The textbook way: the token, a fence, a flag; and the same backwards. One thread does it all.
struct Box {
  std::uint32_t token;  // written by the peer
  std::uint32_t flag;   // written by the peer: steps made so far, of all calls
  std::uint32_t before;
};

__global__ void Bounce(Args args) {
  volatile Box* mine = reinterpret_cast<Box*>(args.scratch);
  volatile Box* theirs = reinterpret_cast<Box*>(args.scratch_peers[1 - args.rank]);
  std::uint32_t step = mine->before + args.rank;
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    while (mine->flag != step) {
    }
    __threadfence_system();
    const std::uint32_t token = args.rank == 0 && i == 0 ? 0 : mine->token;
    std::uint32_t next = 0;
    for (int j = 0; j < 32; ++j) next += Mix(token + args.keys[i * 32 + j]);
    args.out[i] = next;
    theirs->token = next;
    __threadfence_system();
    theirs->flag = step + 1;
    step += 2;
  }
  mine->before = step - args.rank;
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Bounce<<<1, 1, 0, stream>>>(args); }
