#include <allranks/flags.h>

// Warps of the same number on all ranks exchange chunks, a thread two numbers of each shard at a
// time. There are no fences: a number travels in a word of 64 bits together with the number of its
// chunk, counted over all calls, and whoever sees that number has the data.
//
// Each source has kSlots slots of one chunk at each owner, used in turn. A warp tells all sources
// when it has read a chunk, and chunk seq may be written when chunk seq - kSlots was read. A chunk
// is sent before the one before it is summed, so that it is on the wire meanwhile. There is no
// other meeting: a rank may be ahead as far as slots reach, also in the next call.
using namespace allranks;
constexpr int kMaxBlocks = 8, kThreads = 64, kWarps = kThreads / 32;
constexpr std::uint32_t kSlots = 2;
using Packet = ulonglong2;

struct Control {
  std::uint32_t calls[kMaxBlocks];                    // that this block has completed
  std::uint32_t read[kMaxBlocks][kWarps][kMaxRanks];  // by owner: chunks that it has read
};
constexpr int kData = 16384;
static_assert(sizeof(Control) <= kData &&
              kMaxBlocks * kMaxRanks * kSlots * kThreads * sizeof(Packet) <= 131072);

__device__ void Store(Packet* to, float2 v, std::uint32_t number) {
  const std::uint64_t flag = std::uint64_t{number} << 32;
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to),
               "l"(flag | __float_as_uint(v.x)), "l"(flag | __float_as_uint(v.y))
               : "memory");  //@store
}

__device__ Packet Look(const Packet* from) {
  Packet p;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(p.x), "=l"(p.y)
               : "l"(from)
               : "memory");  //@look
  return p;
}

// This thread's packet of chunk `seq` from rank `source`, at rank `at`.
__device__ Packet* Slot(const Args& args, int at, int source, std::uint32_t seq) {
  const std::uint32_t slot = (blockIdx.x * kMaxRanks + source) * kSlots + seq % kSlots;
  return reinterpret_cast<Packet*>(args.scratch_peers[at] + kData) + slot * kThreads + threadIdx.x;
}

struct Plan {  // in pairs of numbers
  int pairs, shard, wave, chunks;
  __device__ explicit Plan(const Args& args) {
    pairs = static_cast<int>(args.n / 2);
    shard = (pairs / 2 + args.world - 1) / args.world * 2;
    wave = gridDim.x * kThreads;
    chunks = (shard + wave - 1) / wave;  // of each warp
  }
};

__device__ void Send(const Args& args, const Plan& plan, const std::uint32_t* read, int i,
                     std::uint32_t seq) {
  const float2* in = reinterpret_cast<const float2*>(args.in);
  const int world = args.world, lane = threadIdx.x % 32;
  float2 v[kMaxRanks];
#pragma unroll
  for (int step = 1; step < kMaxRanks; ++step) {  // all on their way before the first is needed
    const int at = (args.rank + step) % world * plan.shard + i;
    if (step < world && i < plan.shard && at < plan.pairs) v[step] = in[at];
  }
  if (lane < world && lane != args.rank)
    WaitRelaxedSys(&read[lane], seq + 1 - kSlots);  //@wait_room
  __syncwarp();
#pragma unroll
  for (int step = 1; step < kMaxRanks; ++step) {
    const int to = (args.rank + step) % world, at = to * plan.shard + i;
    if (step >= world || i >= plan.shard || at >= plan.pairs) continue;
    Store(Slot(args, to, args.rank, seq), v[step], seq + 1);  //@send
  }
}

__device__ void Receive(const Args& args, const Plan& plan, int i, std::uint32_t seq) {
  const int world = args.world, lane = threadIdx.x % 32, at = args.rank * plan.shard + i;
  const bool valid = i < plan.shard && at < plan.pairs;
  const auto from = [&](int step) { return (args.rank + step) % world; };
  Packet p[kMaxRanks];
#pragma unroll
  for (int step = 1; step < kMaxRanks; ++step) {
    if (valid && step < world) p[step] = Look(Slot(args, args.rank, from(step), seq));
  }
  float2 sum = {};
#pragma unroll
  for (int step = 1; step < kMaxRanks; ++step) {
    if (!valid || step >= world) break;
    while (p[step].x >> 32 != seq + 1 || p[step].y >> 32 != seq + 1) {  //@wait
      p[step] = Look(Slot(args, args.rank, from(step), seq));
    }
    const float2 x = {__uint_as_float(p[step].x), __uint_as_float(p[step].y)};
    sum = step == 1 ? x : float2{sum.x + x.x, sum.y + x.y};
  }
  __syncwarp();
  if (lane < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[lane]);
    StoreRelaxedSys(&peer->read[blockIdx.x][threadIdx.x / 32][args.rank], seq + 1);  //@tell_read
  }
  if (!valid) return;
  const float2 own = reinterpret_cast<const float2*>(args.in)[at];
  reinterpret_cast<float2*>(args.out)[i] = {sum.x + own.x, sum.y + own.y};
}

__global__ void __launch_bounds__(kThreads) ReduceScatter(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t before = mine->calls[blockIdx.x];
  const Plan plan(args);
  const std::uint32_t seq = before * plan.chunks;
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (int k = 0; k <= plan.chunks; ++k) {
    const std::uint32_t* read = mine->read[blockIdx.x][threadIdx.x / 32];
    if (k < plan.chunks) Send(args, plan, read, first + k * plan.wave, seq + k);
    if (k > 0) Receive(args, plan, first + (k - 1) * plan.wave, seq + k - 1);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = before + 1;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int shard = static_cast<int>((args.n / 4 + args.world - 1) / args.world * 2);
  const int needed = (shard + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  ReduceScatter<<<blocks, kThreads, 0, stream>>>(args);
}
