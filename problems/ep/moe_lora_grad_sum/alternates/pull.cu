#include <allranks/flags.h>

// By pulling: every rank stages its three gradients in its own memory and reads everybody's. One
// meeting per call: staged gradients of call k may be read until this rank is in call k + 2, since
// its peers come to the meeting of call k + 1 only when they have read them.
using namespace allranks;
constexpr int kBlocks = 16, kThreads = 128, kData = 65536;

struct Control {
  std::uint32_t calls[kBlocks];
  std::uint32_t staged[kBlocks][kMaxRanks];
};

__global__ void Sum(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x;
  const std::uint32_t call = mine->calls[b] + 1;
  const std::int64_t gate = args.low * args.wide, all = 2 * gate + args.narrow * args.low;
  const std::int64_t first = b * kThreads + threadIdx.x, offset = kData + call % 2 * 4 * all;
  float* own = reinterpret_cast<float*>(args.scratch + offset);
  for (std::int64_t i = first; i < all; i += kBlocks * kThreads) {
    own[i] = i < gate       ? args.grad_gate[i]
             : i < 2 * gate ? args.grad_up[i - gate]
                            : args.grad_down[i - 2 * gate];
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->staged[b][args.rank], call);
    WaitAcquireSys(&mine->staged[b][threadIdx.x], call);
  }
  __syncthreads();
  for (std::int64_t i = first; i < all; i += kBlocks * kThreads) {
    float sum = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += reinterpret_cast<const float*>(args.scratch_peers[r] + offset)[i];
    }
    float* out = i < gate       ? &args.sum_gate[i]
                 : i < 2 * gate ? &args.sum_up[i - gate]
                                : &args.sum_down[i - 2 * gate];
    *out = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[b] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Sum<<<kBlocks, kThreads, 0, stream>>>(args);
}
