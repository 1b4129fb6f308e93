#include <allranks/flags.h>

// One block per rank stores its keys at all ranks, waits for those of all, sorts everything by
// compare and exchange in shared memory, and keeps its part. Boxes exist twice, for odd and even
// calls: a rank leaves call k + 1 with flags of all ranks, which have left call k then.

constexpr int kThreads = 1024;

struct Control { std::uint32_t calls, stored[kMaxRanks], counts[2][kMaxRanks]; };

__device__ std::uint32_t* Box(const Args& args, int at, std::uint32_t call, int source) {
  std::uint32_t* boxes = reinterpret_cast<std::uint32_t*>(args.scratch_peers[at] + sizeof(Control));
  return boxes + (call % 2 * args.world + source) * args.most;
}

__global__ void __launch_bounds__(kThreads) Sort(Args args) {
  extern __shared__ std::uint32_t keys[];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  const int world = args.world, n = *args.count, t = threadIdx.x;
  for (int i = t; i < n; i += kThreads) {
    for (int r = 0; r < world; ++r) Box(args, r, call, args.rank)[i] = args.keys[i];
  }
  __syncthreads();
  if (t < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t]);
    peer->counts[call % 2][args.rank] = n;
    allranks::StoreReleaseSys(&peer->stored[args.rank], call);
    allranks::WaitAcquireSys(&mine->stored[t], call);
  }
  __syncthreads();
  int total = 0, before = 0, length = 2;
  for (int s = 0; s < world; ++s) {
    const int count = mine->counts[call % 2][s];
    for (int i = t; i < count; i += kThreads) keys[total + i] = Box(args, args.rank, call, s)[i];
    if (s < args.rank) before += count;
    total += count;
  }
  while (length < total) length *= 2;
  for (int i = total + t; i < length; i += kThreads) keys[i] = ~0u;
  for (int size = 2; size <= length; size *= 2) {
    for (int d = size / 2; d > 0; d /= 2) {
      __syncthreads();
      for (int i = t; i < length; i += kThreads) {
        if ((i & d) != 0) continue;
        const std::uint32_t a = keys[i], b = keys[i ^ d];
        if ((a > b) == ((i & size) == 0)) keys[i] = b, keys[i ^ d] = a;
      }
    }
  }
  __syncthreads();
  for (int i = t; i < n; i += kThreads) args.out[i] = keys[before + i];
  if (t == 0) mine->calls = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  std::int64_t length = 2;
  while (length < args.world * args.most) length *= 2;
  cudaFuncSetAttribute(Sort, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
  Sort<<<1, kThreads, length * sizeof(std::uint32_t), stream>>>(args);
}
