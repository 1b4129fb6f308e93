// With flags beside the data: a block writes its part of a micro-batch into one of two slots of the
// direction at the neighbour and publishes the step; the block there returns credit when it has
// read the slot.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 16, kThreads = 128;

struct Control {
  std::uint32_t batches[kMaxBlocks];      // of all earlier calls
  std::uint32_t arrived[2][kMaxBlocks];   // by direction, from the sender
  std::uint32_t consumed[2][kMaxBlocks];  // from the receiver
};

// One step of one direction: what comes, `own` if nothing does, goes through f to `out` and on.
template <class F>
__device__ void Pass(const Args& args, int direction, int from, int to, std::uint32_t step,
                     const std::uint32_t* own, std::uint32_t* out, F f) {
  const auto control = [&](int rank) {
    return reinterpret_cast<Control*>(args.scratch_peers[rank]);
  };
  const auto slot = [&](int rank) {
    return reinterpret_cast<std::uint32_t*>(control(rank) + 1) +
           (2 * direction + step % 2) * args.n;
  };
  const int block = blockIdx.x;
  const bool receives = from >= 0 && from < args.world, sends = to >= 0 && to < args.world;
  Control* mine = control(args.rank);
  if (threadIdx.x == 0 && receives) WaitAcquireSys(&mine->arrived[direction][block], step + 1);
  if (threadIdx.x == 32 && sends) WaitAcquireSys(&mine->consumed[direction][block], step - 1);
  __syncthreads();
  for (int i = block * kThreads + threadIdx.x; i < args.n; i += gridDim.x * kThreads) {
    out[i] = f(i, receives ? slot(args.rank)[i] : own[i]);
    if (sends) slot(to)[i] = out[i];
  }
  __syncthreads();
  if (threadIdx.x == 0 && sends) StoreReleaseSys(&control(to)->arrived[direction][block], step + 1);
  if (threadIdx.x == 32 && receives) {
    StoreReleaseSys(&control(from)->consumed[direction][block], step + 1);
  }
}

__global__ void __launch_bounds__(kThreads) Stage(Args args) {
  const int rank = args.rank;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::int64_t n = args.n, micro = args.micro;
  const std::int64_t warm = min(micro, std::int64_t{args.world - 1 - rank});
  const std::uint32_t first = mine->batches[blockIdx.x];
  const auto step = [&](std::uint32_t v, std::uint32_t w) {
    const std::uint32_t t = (v + w) * 0x9E3779B1u;
    return t ^ args.table[t >> 17];
  };
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) {
    args.new_weights[i] = args.weights[i];
  }
  for (std::int64_t m = 0; m < micro + warm; ++m) {
    if (m < micro) {
      Pass(args, 0, rank - 1, rank + 1, first + m, args.in + m * n, args.acts + m * n,
           [&](int i, std::uint32_t x) { return step(x, args.new_weights[i]); });
    }
    const std::int64_t back = m - warm;
    if (back < 0) continue;
    Pass(args, 1, rank + 1, rank - 1, first + back, args.target + back * n, args.grads + back * n,
         [&](int i, std::uint32_t d) {
           const std::uint32_t g = step(d ^ args.acts[back * n + i], args.new_weights[i]);
           args.new_weights[i] += g;
           return g;
         });
  }
  if (threadIdx.x == 0) mine->batches[blockIdx.x] = first + micro;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Stage<<<blocks, kThreads, 0, stream>>>(args);
}
