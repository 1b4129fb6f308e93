#include <allranks/flags.h>
#include <allranks/numbers.h>

// Every rank lays rotated keys and values into a stage in its own memory, and says so by flags; its
// peers load them from there into their caches. Flags wait for local stores only, and loads travel
// in larger packets than stores. Block b of every rank has the same vectors, so it tells only the
// blocks b of its peers and waits for them.
//
// Stages exist twice, for odd and even calls. A block that writes in call k + 2 has seen the flags
// of all peers for call k + 1. They had ended call k then, and had read what call k left there.

using namespace allranks;
using Vector = Pack<__nv_bfloat16>;

constexpr unsigned kMaxBlocks = 64, kFewThreads = 64, kThreads = 256;

// The beginning of every rank's scratch; stages follow.
struct Control {
  std::uint32_t calls[kMaxBlocks];              // that the block has completed
  std::uint32_t staged[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has staged
};

// Vector i of the keys, after its rotation. A head's vectors are its lower half, then its upper
// one. All loads are on their way before the first number is needed.
__device__ uint4 Rotated(const Args& args, unsigned i) {
  const unsigned heads = args.heads, dim = args.dim, half = dim / 16, width = heads * dim / 8;
  const unsigned at = i % (2 * half);
  const bool upper = at >= half;
  const uint4* k = reinterpret_cast<const uint4*>(args.k);
  const float* turn = args.turns + i / width * dim + at % half * 8;
  const uint4 raw[2] = {k[i], k[upper ? i - half : i + half]};
  float cosines[8], sines[8];
  for (int j = 0; j < 8; j += 4) {
    *reinterpret_cast<float4*>(cosines + j) = *reinterpret_cast<const float4*>(turn + j);
    *reinterpret_cast<float4*>(sines + j) = *reinterpret_cast<const float4*>(turn + dim / 2 + j);
  }
  const Vector& self = reinterpret_cast<const Vector&>(raw[0]);
  const Vector& partner = reinterpret_cast<const Vector&>(raw[1]);
  Vector result;
  for (int j = 0; j < Vector::kCount; ++j) {
    const float other = partner[j] * sines[j];
    result.Set(j, self[j] * cosines[j] + (upper ? other : -other));
  }
  return reinterpret_cast<const uint4&>(result);
}

__global__ void __launch_bounds__(kThreads) Gather(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const unsigned rank = args.rank, world = args.world;
  const unsigned width = args.heads * args.dim / 8, all = args.tokens * width;
  const unsigned set = call % 2 * 2 * all, start = args.past * width;
  const unsigned first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
  uint4* keys = reinterpret_cast<uint4*>(args.k_cache) + start;
  uint4* values = reinterpret_cast<uint4*>(args.v_cache) + start;

  uint4* stage = reinterpret_cast<uint4*>(mine + 1) + set;  // all keys, then all values
  for (unsigned i = first; i < all; i += stride) {
    const uint4 k = Rotated(args, i), v = reinterpret_cast<const uint4*>(args.v)[i];
    stage[i] = k;
    keys[rank * all + i] = k;
    stage[all + i] = v;
    values[rank * all + i] = v;
  }
  __syncthreads();  //@made
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->staged[blockIdx.x][rank], call);        //@tell
    WaitAcquireSys(&mine->staged[blockIdx.x][threadIdx.x], call);  //@wait
  }
  __syncthreads();  //@arrived
  for (unsigned i = first; i < all; i += stride) {
    uint4 k[kMaxRanks], v[kMaxRanks];
#pragma unroll
    for (unsigned step = 1; step < kMaxRanks; ++step) {  // all on their way before one is needed
      if (step >= world) break;
      const Control* peer =
          reinterpret_cast<const Control*>(args.scratch_peers[(rank + step) % world]);
      k[step] = reinterpret_cast<const uint4*>(peer + 1)[set + i];
      v[step] = reinterpret_cast<const uint4*>(peer + 1)[set + all + i];
    }
#pragma unroll
    for (unsigned step = 1; step < kMaxRanks; ++step) {
      if (step >= world) break;
      keys[(rank + step) % world * all + i] = k[step];
      values[(rank + step) % world * all + i] = v[step];
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const unsigned vectors = args.tokens * args.heads * args.dim / 8;
  const unsigned threads = vectors <= kMaxBlocks * kFewThreads ? kFewThreads : kThreads;
  const unsigned blocks = (vectors + threads - 1) / threads;
  const unsigned granted = blocks < kMaxBlocks ? blocks : kMaxBlocks;
  Gather<<<granted, threads, 0, stream>>>(args);
}
