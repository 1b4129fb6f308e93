// A rank pulls its slice of all inputs, adds up, and sends the sums into all outputs. The slice is
// cut into chunks of a vector per thread, and blocks take them in turn: a block meets only the same
// block of other ranks. Sums lie in shared memory, from where bulk copies move a chunk to each peer in
// large packets. Three buffers: copies of two chunks are under way while the next one is added up.
//
// A peer's input and output are open from its entry flag on, and it leaves when all have told that
// their chunks are complete. Flags hold the number of the last call and are never reset.
#include <allranks/flags.h>
#include <allranks/numbers.h>
using namespace allranks;
using Bf16 = Number<__nv_bfloat16>;

constexpr int kMaxBlocks = 32, kMaxThreads = 512, kBuffers = 3;

struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has entered
  std::uint32_t done[kMaxBlocks][kMaxRanks];     // by peer: the last call whose sums are here
};

__device__ void SendBulk(uint4* to, const uint4* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(from))), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ int Turn(const Args& args, int step) {
  return args.rank + step < args.world ? args.rank + step : args.rank + step - args.world;
}

// Vector `at` of all inputs, all loads under way before the first is needed.
__device__ uint4 SumOf(const Args& args, int at) {
  uint4 v[kMaxRanks];
#pragma unroll
  for (int step = 0; step < kMaxRanks; ++step) {
    if (step >= args.world) break;
    v[step] = reinterpret_cast<const uint4*>(args.in_peers[Turn(args, step)])[at];
  }
  std::uint32_t sum[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    float low = 0, high = 0;
#pragma unroll
    for (int step = 0; step < kMaxRanks; ++step) {
      if (step >= args.world) break;  //@ranks
      const uint4 y = v[step];
      const std::uint32_t x = k == 0 ? y.x : k == 1 ? y.y : k == 2 ? y.z : y.w;
      low += __uint_as_float(x << 16), high += __uint_as_float(x & 0xffff0000u);
    }
    sum[k] = Bf16::FromFloat(low) | static_cast<std::uint32_t>(Bf16::FromFloat(high)) << 16;
  }
  return {sum[0], sum[1], sum[2], sum[3]};
}

__global__ void __launch_bounds__(kMaxThreads) AllReduce(Args args, int slice) {
  __shared__ __align__(128) uint4 sums[kBuffers][kMaxThreads];
  const int block = blockIdx.x, thread = threadIdx.x, n = args.n, chunk = blockDim.x;
  const int to = (args.rank + thread) % args.world, end = min((args.rank + 1) * slice, n / 8);
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[to]);
  const std::uint32_t call = mine->calls[block] + 1;  //@epoch
  if (thread < args.world) {
    StoreReleaseSys(&peer->entered[block][args.rank], call);  //@enter
    WaitAcquireSys(&mine->entered[block][to], call);          //@entered
  }
  __syncthreads();  //@open
  int buffer = 0;
  for (int at = args.rank * slice + block * chunk; at < end; at += gridDim.x * chunk) {
    const int count = min(chunk, end - at);
    if (thread < count) sums[buffer][thread] = SumOf(args, at + thread);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  //@proxy
    __syncthreads();                                              //@summed
    if (thread < args.world) {
      SendBulk(reinterpret_cast<uint4*>(args.out_peers[to]) + at, sums[buffer], 16 * count);
      asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");  //@reuse
    }
    buffer = buffer + 1 < kBuffers ? buffer + 1 : 0;
  }
  const int left = n / 8 * 8 + thread;  // less than a vector
  if (block == 0 && args.rank == 0 && left < n) {
    float x = 0;
    for (int r = 0; r < args.world; ++r) {
      x += Bf16::ToFloat(reinterpret_cast<const std::uint16_t*>(args.in_peers[r])[left]);
    }
    for (int r = 0; r < args.world; ++r) {  //@left
      reinterpret_cast<std::uint16_t*>(args.out_peers[r])[left] = Bf16::FromFloat(x);
    }
  }
  __syncthreads();  //@all_sent
  if (thread < args.world) {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  //@complete
    StoreReleaseSys(&peer->done[block][args.rank], call);      //@publish
    WaitAcquireSys(&mine->done[block][to], call);              //@wait
  }
  if (thread == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int vectors = static_cast<int>(args.n / 8);
  const int slice = (vectors + args.world - 1) / args.world;
  const int threads = slice > 1 << 15 ? kMaxThreads : 128;
  const int needed = slice > 0 ? (slice + threads - 1) / threads : 1;
  AllReduce<<<needed < kMaxBlocks ? needed : kMaxBlocks, threads, 0, stream>>>(args, slice);
}
