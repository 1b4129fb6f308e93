#include <allranks/flags.h>
#include <allranks/numbers.h>

// Every block finds the largest number of its part, and sends it to all ranks as a word that
// carries its call. Every block of every rank waits for the words of all blocks of all ranks, one
// thread for each. Then it quantises the same part, and sends each row's bytes to the owner. Block
// b has the same columns of all rows on all ranks, so owners hear of the blocks b only.
//
// A rank leaves a call after all blocks of all ranks have sent their bytes, which they do after
// they have read the words: so words exist once. They order nothing else, so bytes go to two sets
// of slots by turns: the flag of the call between says that the owner has used up the set.
using namespace allranks;
constexpr int kMaxBlocks = 32, kThreads = 256, kColumns = 32;  // in vectors of 16, of a block
constexpr int kControl = 4096;

struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by peer: the last call whose bytes are here
  std::uint64_t maxima[kMaxRanks][kMaxBlocks];   // call << 32 | bits, dense for the grid's blocks
};

__device__ float Low(std::uint32_t word) { return __uint_as_float(word << 16); }
__device__ float High(std::uint32_t word) { return __uint_as_float(word & 0xffff0000u); }
__device__ float Max(float amax, uint4 v) {
  for (const std::uint32_t word : {v.x, v.y, v.z, v.w}) {
    amax = fmaxf(amax, fmaxf(fabsf(Low(word)), fabsf(High(word))));
  }
  return amax;
}

__device__ float BlockMax(float amax) {
  __shared__ float part[kThreads / 32];
  for (int k = 16; k > 0; k /= 2) amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, k));
  __syncthreads();  // the last use is over
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = amax;
  __syncthreads();
  for (const float other : part) amax = fmaxf(amax, other);
  return amax;
}

// Four bytes of two words of bf16.
__device__ std::uint32_t Quantise(std::uint32_t a, std::uint32_t b, float inverse) {
  return TwoToE4m3(Low(a) * inverse, High(a) * inverse) |
         TwoToE4m3(Low(b) * inverse, High(b) * inverse) << 16;
}

__global__ void __launch_bounds__(kThreads) ReduceScatter(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x, t = threadIdx.x, world = args.world, slice = args.m / 16;
  const std::uint32_t call = mine->calls[b] + 1;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t % world]);
  // Columns of this block: `per` vectors of every row; j counts them row by row.
  const int per = (slice + gridDim.x - 1) / gridDim.x, begin = b * per;
  const int count = max(0, min(per, slice - begin));
  const uint4* in = reinterpret_cast<const uint4*>(args.in);

  float amax = 0;
  for (int j = t; j < count * world; j += kThreads) {
    const int i = 2 * (j / count * slice + begin + j % count);
    const uint4 v[2] = {in[i], in[i + 1]};
    amax = Max(Max(amax, v[0]), v[1]);
  }
  const std::uint64_t word = std::uint64_t{call} << 32 | __float_as_uint(BlockMax(amax));
  if (t < world)
    StoreRelaxedSys(&peer->maxima[0][0] + args.rank * gridDim.x + b, word);  //@send_max
  amax = 0;
  for (int k = t; k < world * gridDim.x; k += kThreads) {
    std::uint64_t word;
    do {
      word = LoadRelaxedSys(&mine->maxima[0][0] + k);
    } while (word >> 32 != call);
    amax = fmaxf(amax, __uint_as_float(static_cast<std::uint32_t>(word)));
  }
  amax = BlockMax(amax);
  // The exponent of amax, one more if its mantissa is beyond that of 448, and 8 less.
  const std::uint32_t exponent = ((__float_as_uint(amax) + 0x1fffff) >> 23) - 8;
  const float scale = amax == 0 ? 0 : __uint_as_float(exponent << 23);
  const float inverse = amax == 0 ? 0 : __uint_as_float((254 - exponent) << 23);

  const int set = call % 2 * world * slice;
  for (int j = t; j < count * world; j += kThreads) {
    const int owner = j / count, at = begin + j % count, i = 2 * (owner * slice + at);
    const uint4 v = in[i], w = in[i + 1];
    reinterpret_cast<uint4*>(args.scratch_peers[owner] + kControl)[set + args.rank * slice + at] = {
        Quantise(v.x, v.y, inverse), Quantise(v.z, v.w, inverse), Quantise(w.x, w.y, inverse),
        Quantise(w.z, w.w, inverse)};
  }
  __syncthreads();  //@before
  if (t < world) {
    StoreReleaseSys(&peer->arrived[b][args.rank], call);  //@tell
    WaitAcquireSys(&mine->arrived[b][t], call);           //@wait
  }
  __syncthreads();  //@after

  const std::uint32_t* bytes = reinterpret_cast<const std::uint32_t*>(args.scratch + kControl);
  for (int i = 4 * begin + t; i < 4 * (begin + count); i += kThreads) {  // four numbers
    std::uint32_t q[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
      if (r < world) q[r] = bytes[4 * (set + r * slice) + i];
    }
    float4 sum = {};
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= world) break;  //@ranks
      const float2 a = TwoFromE4m3(q[r]), c = TwoFromE4m3(q[r] >> 16);
      sum = {sum.x + a.x, sum.y + a.y, sum.z + c.x, sum.w + c.y};
    }
    reinterpret_cast<float4*>(args.out)[i] = {sum.x * scale, sum.y * scale, sum.z * scale,
                                              sum.w * scale};
  }
  if (t == 0) mine->calls[b] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.m / 16 + kColumns - 1) / kColumns);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  ReduceScatter<<<blocks, kThreads, 0, stream>>>(args);
}
