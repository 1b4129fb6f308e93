// Packets of 16 bytes, each one access: three words and the number of the call. Who sees the number
// has the words: no fence, no second trip.
//
// There are as many buffers as ranks, in turn, and nobody gives anything back. A rank that enters
// call k has left call k - 1, so the rank before it has entered call k - 1 and left call k - 2, and
// so on around the ring: the rank after it has left call k - world, whose buffer is the one of k.

constexpr int kThreads = 128, kMaxBlocks = 64, kData = 1024;

__device__ void Send(uint4* to, uint4 packet) {
  asm volatile(
      "{ .reg .b64 low, high; .reg .b128 all;\n"
      "mov.b64 low, {%1, %2}; mov.b64 high, {%3, %4}; mov.b128 all, {low, high};\n"
      "st.relaxed.sys.global.b128 [%0], all; }" ::"l"(to),
      "r"(packet.x), "r"(packet.y), "r"(packet.z), "r"(packet.w)
      : "memory");  //@send
}

__device__ uint4 Look(const uint4* from) {
  uint4 packet;
  asm volatile(
      "{ .reg .b64 low, high; .reg .b128 all;\n"
      "ld.relaxed.sys.global.b128 all, [%4]; mov.b128 {low, high}, all;\n"
      "mov.b64 {%0, %1}, low; mov.b64 {%2, %3}, high; }"
      : "=r"(packet.x), "=r"(packet.y), "=r"(packet.z), "=r"(packet.w)
      : "l"(from)
      : "memory");  //@look
  return packet;
}

__global__ void __launch_bounds__(kThreads) Put(Args args) {
  const int n = args.n, packets = (n + 2) / 3, stride = gridDim.x * kThreads;
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);  // own: completed by block
  const std::uint32_t call = calls[blockIdx.x] + 1;
  const int next = (args.rank + 1) % args.world, buffer = call % args.world * packets;
  uint4* to = reinterpret_cast<uint4*>(args.scratch_peers[next] + kData) + buffer;
  const uint4* from = reinterpret_cast<const uint4*>(args.scratch + kData) + buffer;
  const std::uint32_t* in = args.in;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < packets; i += stride) {
    const int at = 3 * i;
    Send(to + i, {in[at], at + 1 < n ? in[at + 1] : 0, at + 2 < n ? in[at + 2] : 0, call});
  }
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < packets; i += stride) {
    const int at = 3 * i;
    uint4 packet;
    do {
      packet = Look(from + i);
    } while (packet.w != call);  //@arrived
    args.out[at] = packet.x;
    if (at + 1 < n) args.out[at + 1] = packet.y;
    if (at + 2 < n) args.out[at + 2] = packet.z;
  }
  __syncthreads();
  if (threadIdx.x == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = ((args.n + 2) / 3 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Put<<<blocks, kThreads, 0, stream>>>(args);
}
