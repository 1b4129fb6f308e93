#include <allranks/flags.h>
#include <allranks/numbers.h>

// A block takes chunks of the shard. Its workers quantise 16 numbers each, so that 8 neighbours
// share a scale, and stage the bytes in shared memory. Lane p of the last warp serves peer p: it
// announces this rank, waits until the peer has entered, and sends the staged bytes there by a bulk
// copy. The few scales go by ordinary stores of all threads.
//
// A peer's outputs are open from its entry flag on, and it cannot leave before our arrival flag.
// Flags hold the number of the last call; they only grow, so nothing is ever reset.
using namespace allranks;

constexpr int kMaxBlocks = 32, kWorkers = 128;
constexpr int kChunk = 16 * kWorkers;  // elements

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has entered
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by peer: the last call whose data are here
};

// Two bf16 numbers of a word.
__device__ float2 Two(std::uint32_t word) {
  return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
}

// 16 bytes of 16 numbers; all lanes of a warp call it. Eight lanes have the same scale.
__device__ uint4 Quantise(const std::uint32_t (&word)[8], float* scale) {
  float amax = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    amax = fmaxf(amax, fmaxf(fabsf(Two(word[k]).x), fabsf(Two(word[k]).y)));
  }
#pragma unroll
  for (int lanes = 4; lanes > 0; lanes /= 2) {
    amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, lanes));
  }
  const float inverse = amax == 0 ? 0 : 448.0f / amax;
  std::uint32_t bytes[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float2 a = Two(word[2 * k]), b = Two(word[2 * k + 1]);
    bytes[k] = TwoToE4m3(a.x * inverse, a.y * inverse) | TwoToE4m3(b.x * inverse, b.y * inverse)
                                                             << 16;
  }
  *scale = amax / 448.0f;
  return {bytes[0], bytes[1], bytes[2], bytes[3]};
}

__device__ void Send(std::uint8_t* to, const uint4* from, int size) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(from))), "r"(size)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__global__ void __launch_bounds__(kWorkers + 32) GatherQuantised(Args args) {
  __shared__ __align__(128) uint4 bytes[kWorkers];
  __shared__ float scale[kChunk / 128];
  const int block = blockIdx.x, t = threadIdx.x, lane = t % 32;
  const bool talks = t >= kWorkers && lane < args.world;
  const std::int64_t scales = (args.n + 127) / 128;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[lane % args.world]);
  const std::uint32_t call = mine->calls[block] + 1;                   //@epoch
  if (talks) StoreReleaseSys(&peer->entered[block][args.rank], call);  //@enter

  for (std::int64_t first = block * kChunk; first < args.n; first += gridDim.x * kChunk) {
    const int count = args.n - first < kChunk ? args.n - first : kChunk, here = (count + 127) / 128;
    if (t < kWorkers) {
      uint4 v[2] = {};
      const uint4* in = reinterpret_cast<const uint4*>(args.in) + first / 8 + 2 * t;
      if (16 * t < count) v[0] = in[0], v[1] = in[1];
      float own;
      bytes[t] = Quantise({v[0].x, v[0].y, v[0].z, v[0].w, v[1].x, v[1].y, v[1].z, v[1].w}, &own);
      if (t % 8 == 0) scale[t / 8] = own;
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  //@proxy
    } else if (talks) {
      WaitAcquireSys(&mine->entered[block][lane], call);  //@entered
    }
    __syncthreads();  //@staged
    if (talks) Send(args.values_peers[lane] + args.rank * args.n + first, bytes, count);
    for (int i = t; i < args.world * here; i += kWorkers + 32) {
      args.scales_peers[i / here][args.rank * scales + first / 128 + i % here] = scale[i % here];
    }
    if (talks) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  //@reuse
    __syncthreads();                                                           //@stored
  }
  if (talks) {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  //@complete
    StoreReleaseSys(&peer->arrived[block][args.rank], call);   //@publish
    WaitAcquireSys(&mine->arrived[block][lane], call);         //@wait
  }
  if (t == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t chunks = (args.n + kChunk - 1) / kChunk;
  const int blocks = chunks < kMaxBlocks ? chunks : kMaxBlocks;
  GatherQuantised<<<blocks, kWorkers + 32, 0, stream>>>(args);
}
