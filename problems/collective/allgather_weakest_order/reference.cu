// No fence at all: every word travels together with the number of the call in one access of eight
// bytes, which arrives whole. Who sees the number has the word, so relaxed accesses of system scope
// are enough; twice the bytes on the wire cost less than one release and its flag.
//
// Blocks are (part, step): a block sends its part to the rank `step` places behind, and receives
// the same part from the rank `step` places ahead. Step 0 is the rank's own row.
//
// There are two sets of slots, used in turn. A rank sends into the set of call k again in call
// k + 2, after its call k + 1 has ended: then it has words of call k + 1 of every peer, and a peer
// sends those after its own call k has ended, so it has read all slots of call k.
#include <cstdint>

constexpr int kThreads = 256;
constexpr int kMaxParts = 8;
constexpr int kData = 1024;  // where the slots begin, behind the counters of calls

// Two words, each with the number of the call above it.
struct Packet {
  std::uint64_t word[2];
};

__device__ std::uint64_t Flag(std::uint32_t call) { return std::uint64_t{call} << 32; }

__device__ void Send(Packet* to, uint2 pair, std::uint32_t call) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(Flag(call) | pair.x),
               "l"(Flag(call) | pair.y)
               : "memory");  //@send
}

__device__ uint2 Receive(const Packet* from, std::uint32_t call) {
  std::uint64_t a, b;
  do {
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(a), "=l"(b)
                 : "l"(from)
                 : "memory");  //@receive
  } while (((a ^ Flag(call)) | (b ^ Flag(call))) >> 32 != 0);  //@wait
  return {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)};
}

__global__ void __launch_bounds__(kThreads) AllGather(Args args) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  std::uint32_t* mine = &calls[blockIdx.y * kMaxParts + blockIdx.x];
  const std::uint32_t call = *mine + 1;  //@epoch
  const int step = blockIdx.y, pairs = args.n / 2;
  const int to = (args.rank + step) % args.world,
            from = (args.rank + args.world - step) % args.world;
  const std::int64_t set = (call & 1) * args.world * pairs;
  Packet* there =
      reinterpret_cast<Packet*>(args.scratch_peers[to] + kData) + set + args.rank * pairs;
  Packet* here = reinterpret_cast<Packet*>(args.scratch + kData) + set + from * pairs;
  const uint2* in = reinterpret_cast<const uint2*>(args.in);
  uint2* out = reinterpret_cast<uint2*>(args.out) + from * pairs;

  for (int i = blockIdx.x * kThreads + threadIdx.x; i < pairs; i += gridDim.x * kThreads) {
    const uint2 pair = in[i];
    if (step == 0) {
      out[i] = pair;
    } else {
      Send(there + i, pair, call);
      out[i] = Receive(here + i, call);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) *mine = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 2 + kThreads - 1) / kThreads;
  const int parts = needed < kMaxParts ? needed : kMaxParts;
  AllGather<<<dim3(parts, args.world), kThreads, 0, stream>>>(args);
}
