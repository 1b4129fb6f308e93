#include <cuda.h>

// Two movers. Small messages go through scratch in packets of 16 bytes, each one access: three
// words and the number of the call, without any fence. There are as many buffers as ranks: a rank
// that enters call k knows, around the ring, that the next one has left call k - world. Others go
// straight to the next rank's `out` by copy engine: stream memory operations cost less than fences
// of SMs, and the engine has the largest packets.
//
// `entered` and `full` are raised by a neighbour and lowered by their owner, before it lets that
// neighbour come to the place where it raises them again.
constexpr int kPackets = 496, kSmall = 3 * kPackets, kThreads = 64;  // kSmall: words
constexpr int kMaxBlocks = (kPackets + kThreads - 1) / kThreads;

struct Control {
  std::uint32_t calls[kMaxBlocks];                  // own: that this block has completed
  std::uint32_t entered;                            // by the receiver: its `out` is open
  std::uint32_t full;                               // by the sender: the message is in `out`
  alignas(256) uint4 packets[kMaxRanks][kPackets];  // by the sender
};
static_assert(sizeof(Control) <= 65536);

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

// A thread per packet.
__global__ void PutSmall(Args args, Control* mine, Control* target) {
  const int i = blockIdx.x * kThreads + threadIdx.x, at = 3 * i, n = args.n;
  const std::uint32_t call = mine->calls[blockIdx.x] + 1, buffer = call % args.world;
  if (at < n) {
    const std::uint32_t* in = args.in;
    Send(&target->packets[buffer][i],
         {in[at], at + 1 < n ? in[at + 1] : 0, at + 2 < n ? in[at + 2] : 0, call});
    uint4 packet;
    do {
      packet = Look(&mine->packets[buffer][i]);
    } while (packet.w != call);  //@arrived
    args.out[at] = packet.x;
    if (at + 1 < n) args.out[at + 1] = packet.y;
    if (at + 2 < n) args.out[at + 2] = packet.z;
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

using Step = CUstreamBatchMemOpParams;

Step Write(const std::uint32_t* word, std::uint32_t value) {
  Step step = {};
  step.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, reinterpret_cast<CUdeviceptr>(word)};
  step.writeValue.value = value;
  step.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  return step;
}

Step Wait(const std::uint32_t* word, std::uint32_t value) {
  Step step = {};
  step.waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, reinterpret_cast<CUdeviceptr>(word)};
  step.waitValue.value = value;
  step.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  return step;
}

// Raises a neighbour's flag, waits for the own one and lowers it, at the cost of one operation.
void Meet(cudaStream_t stream, std::uint32_t* theirs, std::uint32_t* mine) {
  Step steps[] = {Write(theirs, 1), Wait(mine, 1), Write(mine, 0)};
  cuStreamBatchMemOp(stream, 3, steps, 0);
}

void Copy(void* to, const Args& args, cudaStream_t stream) {
  cudaMemcpyAsync(to, args.in, 4 * args.n, cudaMemcpyDeviceToDevice, stream);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int next = (args.rank + 1) % args.world, before = (args.rank + args.world - 1) % args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* target = reinterpret_cast<Control*>(args.scratch_peers[next]);
  Control* source = reinterpret_cast<Control*>(args.scratch_peers[before]);
  if (args.n <= kSmall) {
    const int blocks = ((args.n + 2) / 3 + kThreads - 1) / kThreads;
    PutSmall<<<blocks, kThreads, 0, stream>>>(args, mine, target);
    return;
  }
  Meet(stream, &source->entered, &mine->entered);  //@enter
  Copy(args.out_peers[next], args, stream);
  Meet(stream, &target->full, &mine->full);  //@finish
}
