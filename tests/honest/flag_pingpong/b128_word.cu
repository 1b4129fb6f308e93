// design: one 128-bit scalar per message, step number and token, stored and loaded whole by .b128 accesses

struct alignas(16) Box {
  std::uint64_t message[2];  // written by the peer: steps made so far; token
  std::uint32_t before;      // own: steps of all earlier calls
};

__device__ inline void Send(std::uint64_t* to, std::uint64_t flag, std::uint64_t token) {
  asm volatile(
      "{ .reg .b128 m; mov.b128 m, {%1, %2}; st.relaxed.sys.global.b128 [%0], m; }" ::"l"(to),
      "l"(flag), "l"(token)
      : "memory");
}

__device__ inline std::uint32_t Receive(const std::uint64_t* from, std::uint64_t flag) {
  std::uint64_t seen, token;
  do {
    asm volatile("{ .reg .b128 m; ld.relaxed.sys.global.b128 m, [%2]; mov.b128 {%0, %1}, m; }"
                 : "=l"(seen), "=l"(token)
                 : "l"(from)
                 : "memory");
  } while (seen != flag);
  return static_cast<std::uint32_t>(token);
}

__global__ void Bounce(Args args) {
  Box* mine = reinterpret_cast<Box*>(args.scratch);
  Box* theirs = reinterpret_cast<Box*>(args.scratch_peers[1 - args.rank]);
  std::uint32_t step = mine->before + args.rank;
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    const std::uint32_t key = args.keys[i * 32 + threadIdx.x];
    std::uint32_t token = 0;
    if (threadIdx.x == 0) {
      const std::uint32_t received = Receive(mine->message, step);
      if (args.rank == 1 || i > 0) token = received;
    }
    token = __shfl_sync(~0u, token, 0);
    const std::uint32_t next = __reduce_add_sync(~0u, Mix(token + key));
    if (threadIdx.x == 0) {
      Send(theirs->message, step + 1, next);
      args.out[i] = next;
    }
    step += 2;
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->before = step - args.rank;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Bounce<<<1, 32, 0, stream>>>(args);
}
