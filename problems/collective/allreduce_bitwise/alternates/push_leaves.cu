#include <allranks/flags.h>

// Every rank pushes its micro-batches as they are into slots of all ranks, and each adds up the
// whole tree. One meeting per call, so there are two sets of slots in turn.
using namespace allranks;
constexpr int kMaxBlocks = 32, kThreads = 128, kMaxParts = 4, kData = 65536;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t sent[kMaxBlocks][kMaxRanks];
};

__global__ void AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x, t = threadIdx.x, world = args.world, parts = args.parts;
  const std::uint32_t call = mine->calls[b] + 1;
  const std::int64_t set = call % 2 * kMaxRanks * kMaxParts * args.n;
  const std::int64_t first = b * kThreads + t, stride = gridDim.x * kThreads;
  for (int p = 0; p < parts; ++p) {
    for (std::int64_t i = first; i < args.n; i += stride) {
      const float x = args.in[p * args.n + i];
      for (int r = 0; r < world; ++r) {
        float* slots = reinterpret_cast<float*>(args.scratch_peers[r] + kData) + set;
        slots[(args.rank * parts + p) * args.n + i] = x;
      }
    }
  }
  __syncthreads();
  if (t < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t]);
    StoreReleaseSys(&peer->sent[b][args.rank], call);
    WaitAcquireSys(&mine->sent[b][t], call);
  }
  __syncthreads();
  const float* slots = reinterpret_cast<const float*>(args.scratch + kData) + set;
  for (std::int64_t i = first; i < args.n; i += stride) {
    float x[kMaxRanks * kMaxParts];
#pragma unroll
    for (int m = 0; m < kMaxRanks * kMaxParts; ++m) {
      if (m < world * parts) x[m] = slots[m * args.n + i];
    }
#pragma unroll
    for (int size = 1; size < kMaxRanks * kMaxParts; size *= 2) {
#pragma unroll
      for (int a = 0; a + size < kMaxRanks * kMaxParts; a += 2 * size) {
        if (a + size < world * parts) x[a] += x[a + size];
      }
    }
    args.out[i] = x[0];
  }
  if (t == 0) mine->calls[b] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}
