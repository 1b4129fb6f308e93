#include <allranks/flags.h>
#include <allranks/numbers.h>

// Stores straight into the peers' caches. Block b of every rank meets its peers' blocks b twice:
// when all have entered the call, so that caches may be written, and when all have stored. A thread
// has both halves of a pair of vectors and the same vectors of the values.

using Vector = allranks::Pack<__nv_bfloat16>;
constexpr unsigned kMaxBlocks = 64, kThreads = 128;

struct Control {
  std::uint32_t meetings[kMaxBlocks];
  std::uint32_t reached[kMaxBlocks][kMaxRanks];  // by peer: the last meeting that it has come to
};

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->reached[blockIdx.x][args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[blockIdx.x][threadIdx.x], meeting);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) Gather(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t before = mine->meetings[blockIdx.x];
  const unsigned half = args.dim / 16, width = args.heads * args.dim / 8;
  const Vector* k = reinterpret_cast<const Vector*>(args.k);
  const Vector* v = reinterpret_cast<const Vector*>(args.v);
  Meet(args, before + 1);
  for (unsigned i = blockIdx.x * kThreads + threadIdx.x; i < args.tokens * width / 2;
       i += gridDim.x * kThreads) {
    const unsigned low = i / half * 2 * half + i % half, high = low + half;
    const float* cosines = args.turns + low / width * args.dim + i % half * 8;
    const float* sines = cosines + args.dim / 2;
    const Vector a = k[low], b = k[high];
    const Vector v_low = v[low], v_high = v[high];
    Vector k_low, k_high;
    for (int j = 0; j < Vector::kCount; ++j) {
      k_low.Set(j, a[j] * cosines[j] - b[j] * sines[j]);
      k_high.Set(j, b[j] * cosines[j] + a[j] * sines[j]);
    }
    for (int step = 0; step < args.world; ++step) {
      const unsigned to = (args.rank + step) % args.world;
      const unsigned first = (args.past + args.rank * args.tokens) * width;
      Vector* keys = reinterpret_cast<Vector*>(args.k_cache_peers[to]) + first;
      Vector* values = reinterpret_cast<Vector*>(args.v_cache_peers[to]) + first;
      keys[low] = k_low;
      keys[high] = k_high;
      values[low] = v_low;
      values[high] = v_high;
    }
  }
  Meet(args, before + 2);
  if (threadIdx.x == 0) mine->meetings[blockIdx.x] = before + 2;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const unsigned pairs = args.tokens * args.heads * args.dim / 16;
  const unsigned blocks = (pairs + kThreads - 1) / kThreads;
  const unsigned granted = blocks < kMaxBlocks ? blocks : kMaxBlocks;
  Gather<<<granted, kThreads, 0, stream>>>(args);
}
