#include <cstdint>

// Behind a switch every rank is next to every other, so chunks go straight to the owner of their
// shard, who adds them up in the order of the ring and sends the sums to everybody. Warps of the
// same number on all ranks deal with the same chunks, a thread two numbers of each shard at a time.
//
// There are no fences: a number travels in a word of 64 bits together with the number of its chunk,
// counted over all calls, and whoever sees that number has the data.
//
// Each source has two slots for parts and two for sums at each rank, used in turn. Nobody tells
// that he has read one: who has the sums of chunk k knows that their owners have read its parts, so
// that those of chunk k + 2 may follow; and owners have the parts of chunk k + 2 only when
// everybody has taken the sums of chunk k. The next chunk is sent before this one is summed. There
// is no other meeting: the first chunks of a call follow the last ones of the call before.
constexpr int kMaxBlocks = 8, kThreads = 64, kSlots = 2;
using Packet = ulonglong2;
enum Kind { kPart, kSum };

constexpr int kData = 16384;  // behind the counters of calls, one per block
static_assert(2 * kMaxBlocks * kMaxRanks * kSlots * kThreads * sizeof(Packet) <= 262144);

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
__device__ Packet* Slot(const Args& args, Kind kind, int at, int source, std::uint32_t seq) {
  const std::uint32_t slot =
      ((kind * kMaxBlocks + blockIdx.x) * kMaxRanks + source) * kSlots + seq % kSlots;
  return reinterpret_cast<Packet*>(args.scratch_peers[at] + kData) + slot * kThreads + threadIdx.x;
}

// What a packet brings; `p` is what was there at the first look.
__device__ float2 Take(const Packet* from, Packet p, std::uint32_t seq) {
  while (p.x >> 32 != seq + 1 || p.y >> 32 != seq + 1) p = Look(from);  //@wait
  return {__uint_as_float(p.x), __uint_as_float(p.y)};
}

struct Plan {  // in pairs of numbers
  int pairs, shard, wave, chunks;
  __device__ explicit Plan(const Args& args) {
    pairs = static_cast<int>(args.n / 2);
    shard = (pairs / 2 + 2 * args.world - 1) / (2 * args.world) * 4;
    wave = gridDim.x * kThreads;
    chunks = (shard + wave - 1) / wave;  // of each warp
  }
};

__device__ void Send(const Args& args, const Plan& plan, int i, std::uint32_t seq) {
  const float2* in = reinterpret_cast<const float2*>(args.in);
  float2 v[kMaxRanks];
#pragma unroll
  for (int step = 1; step < kMaxRanks; ++step) {  // all on their way before the first is needed
    const int at = (args.rank + step) % args.world * plan.shard + i;
    if (step < args.world && i < plan.shard && at < plan.pairs) v[step] = in[at];
  }
#pragma unroll
  for (int step = 1; step < kMaxRanks; ++step) {
    const int to = (args.rank + step) % args.world, at = to * plan.shard + i;
    if (step >= args.world || i >= plan.shard || at >= plan.pairs) continue;
    Store(Slot(args, kPart, to, args.rank, seq), v[step], seq + 1);  //@send
  }
}

// Sums the own shard and spreads it.
__device__ void Reduce(const Args& args, const Plan& plan, int i, std::uint32_t seq) {
  const int world = args.world, at = args.rank * plan.shard + i;
  if (i >= plan.shard || at >= plan.pairs) return;
  const int turn = i < plan.shard / 2 ? 1 : world - 1;
  const auto part = [&](int step) {
    return Slot(args, kPart, args.rank, (args.rank + step * turn) % world, seq);
  };
  Packet p[kMaxRanks];
#pragma unroll
  for (int step = 1; step < kMaxRanks; ++step) {
    if (step < world) p[step] = Look(part(step));
  }
  const float2 own = reinterpret_cast<const float2*>(args.in)[at];
  float2 sum = Take(part(1), p[1], seq);
#pragma unroll
  for (int step = 2; step < kMaxRanks; ++step) {
    if (step >= world) break;
    const float2 x = Take(part(step), p[step], seq);
    sum = {sum.x + x.x, sum.y + x.y};
  }
  sum = {sum.x + own.x, sum.y + own.y};
  for (int step = 1; step < world; ++step) {
    Store(Slot(args, kSum, (args.rank + step) % world, args.rank, seq), sum, seq + 1);  //@spread
  }
  reinterpret_cast<float2*>(args.out)[at] = sum;
}

// Takes the sums of all other shards.
__device__ void Gather(const Args& args, const Plan& plan, int i, std::uint32_t seq) {
  const auto valid = [&](int r) {
    return r < args.world && r != args.rank && i < plan.shard && r * plan.shard + i < plan.pairs;
  };
  Packet p[kMaxRanks];
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {
    if (valid(r)) p[r] = Look(Slot(args, kSum, args.rank, r, seq));
  }
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {
    if (!valid(r)) continue;
    const float2 sum = Take(Slot(args, kSum, args.rank, r, seq), p[r], seq);
    reinterpret_cast<float2*>(args.out)[r * plan.shard + i] = sum;
  }
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t before = calls[blockIdx.x];
  const Plan plan(args);
  const std::uint32_t seq = before * plan.chunks;
  const int first = blockIdx.x * kThreads + threadIdx.x;
  Send(args, plan, first, seq);
  for (int k = 0; k < plan.chunks; ++k) {
    const int i = first + k * plan.wave;
    if (k + 1 < plan.chunks) Send(args, plan, i + plan.wave, seq + k + 1);
    Reduce(args, plan, i, seq + k);
    Gather(args, plan, i, seq + k);
  }
  __syncthreads();
  if (threadIdx.x == 0) calls[blockIdx.x] = before + 1;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int shard = static_cast<int>((args.n / 4 + 2 * args.world - 1) / (2 * args.world) * 4);
  const int needed = (shard + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
