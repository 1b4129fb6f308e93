// Every element travels with the number of the call in one access of eight bytes, which arrives
// whole: relaxed accesses of system scope are enough, and there is no fence. Nobody waits for the
// election before sending: each rank sends to all, which loads no link more than the root's is
// loaded anyway, and saves the trip of the votes. Who turns out to be the root adds up its slots.
//
// Votes and slots exist twice, used in turn. A rank is in call k + 2 after it has votes of call
// k + 1 of all ranks, which they cast after their call k has ended: nobody needs the votes and
// slots of call k any more.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 16;
constexpr int kThreads = 256;

// Two elements, each with the number of the call above it.
struct Packet {
  std::uint64_t word[2];
};

// The beginning of every rank's scratch; slots of packets follow.
struct Control {
  std::uint64_t votes[2][kMaxRanks];  // by peer: call, vote
  std::uint32_t calls[kMaxBlocks];    // that this block has completed
};

__device__ Packet* Slots(const Args& args, int rank) {
  return reinterpret_cast<Packet*>(args.scratch_peers[rank] + sizeof(Control));
}

__device__ void Send(Packet* to, float2 v, std::uint32_t call) {
  const std::uint64_t flag = std::uint64_t{call} << 32;
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to),
               "l"(flag | __float_as_uint(v.x)), "l"(flag | __float_as_uint(v.y))
               : "memory");  //@send
}

__device__ Packet Look(const Packet* from) {
  Packet p;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(p.word[0]), "=l"(p.word[1])
               : "l"(from)
               : "memory");  //@look
  return p;
}

__device__ bool Absent(const Packet& p, std::uint32_t call) {
  return p.word[0] >> 32 != call || p.word[1] >> 32 != call;
}

__global__ void __launch_bounds__(kThreads) Reduce(Args args) {
  __shared__ int ballot[kMaxRanks];
  const int thread = threadIdx.x, world = args.world, pairs = args.n / 2;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  if (blockIdx.x == 0 && thread < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread]);
    const std::uint64_t vote = std::uint64_t{call} << 32 | *args.vote;
    StoreRelaxedSys(&peer->votes[call % 2][args.rank], vote);
  }
  const float2* in = reinterpret_cast<const float2*>(args.in);
  const int first = blockIdx.x * kThreads + thread, stride = gridDim.x * kThreads;
  const std::int64_t set = (call & 1) * args.world * pairs;
  for (int i = first; i < pairs; i += stride) {
    const float2 own = in[i];
    for (int step = 1; step < world; ++step) {
      Send(Slots(args, (args.rank + step) % world) + set + args.rank * pairs + i, own, call);
    }
  }
  if (thread < world) {
    std::uint64_t vote;
    do {
      vote = LoadRelaxedSys(&mine->votes[call % 2][thread]);
    } while (vote >> 32 != call);
    ballot[thread] = static_cast<int>(vote);
  }
  __syncthreads();  //@elected
  int sum = 0;
  for (int r = 0; r < world; ++r) sum += ballot[r];
  const int root = sum % args.world;

  for (int i = first; args.rank == root && i < pairs; i += stride) {
    const Packet* slots = Slots(args, args.rank) + set + i;
    const float2 own = in[i];
    Packet p[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
      if (r < world && r != args.rank) p[r] = Look(slots + r * pairs);
    }
    float2 total = {0, 0};
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= world) break;
      while (r != args.rank && Absent(p[r], call)) p[r] = Look(slots + r * pairs);  //@wait
      float2 v = own;
      if (r != args.rank) v = {__uint_as_float(p[r].word[0]), __uint_as_float(p[r].word[1])};
      total = {total.x + v.x, total.y + v.y};
    }
    reinterpret_cast<float2*>(args.out)[i] = total;
  }
  if (thread == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 2 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Reduce<<<blocks, kThreads, 0, stream>>>(args);
}
