// The whole list goes to all ranks, unsorted, and every owner looks for its columns in it: it has
// more to read, but a request is a column alone, and the place of an entry is that of its column.
// Three kernels: send the list; look up and answer; multiply. Flags are by block and rank.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kBlocks = 32, kThreads = 256;

// The beginning of every rank's scratch; entries follow, then the lists of all ranks.
struct Control {
  std::uint32_t calls;
  std::uint32_t asked[kMaxRanks][kBlocks], answered[kMaxRanks][kBlocks];
};

__device__ float* Entries(const Args& args, int at) {
  return reinterpret_cast<float*>(reinterpret_cast<Control*>(args.scratch_peers[at]) + 1);
}
__device__ int* List(const Args& args, int at, int from) {
  return reinterpret_cast<int*>(Entries(args, at)) + (from + 1) * args.needed;
}

__global__ void __launch_bounds__(kThreads) Ask(Args args) {
  const std::uint32_t call = reinterpret_cast<Control*>(args.scratch)->calls + 1;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < args.needed; i += kBlocks * kThreads) {
    for (int r = 0; r < args.world; ++r) List(args, r, args.rank)[i] = args.columns[i];
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->asked[args.rank][blockIdx.x], call);
  }
}

__global__ void __launch_bounds__(kThreads) Answer(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  if (threadIdx.x < args.world) WaitAcquireSys(&mine->asked[threadIdx.x][blockIdx.x], call);
  __syncthreads();
  for (int r = 0; r < args.world; ++r) {
    const int* list = List(args, args.rank, r);
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < args.needed; i += kBlocks * kThreads) {
      const std::int64_t at = list[i] - args.rank * args.entries;
      if (at >= 0 && at < args.entries) Entries(args, r)[i] = args.x[at];
    }
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->answered[args.rank][blockIdx.x], call);
  }
}

__global__ void __launch_bounds__(kThreads) Multiply(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  for (int i = threadIdx.x; i < args.world * kBlocks; i += kThreads) {
    WaitAcquireSys(&mine->answered[i / kBlocks][i % kBlocks], call);
  }
  __syncthreads();
  const float* entry = Entries(args, args.rank);
  for (int row = blockIdx.x * kThreads + threadIdx.x; row < args.rows; row += kBlocks * kThreads) {
    float sum = 0;
    for (std::int64_t j = row * args.per_row; j < (row + 1) * args.per_row; ++j) {
      sum += args.value[j] * entry[args.index[j]];
    }
    args.y[row] = sum;
  }
}

__global__ void Advance(Args args) { ++reinterpret_cast<Control*>(args.scratch)->calls; }

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Ask<<<kBlocks, kThreads, 0, stream>>>(args);
  Answer<<<kBlocks, kThreads, 0, stream>>>(args);
  Multiply<<<kBlocks, kThreads, 0, stream>>>(args);
  Advance<<<1, 1, 0, stream>>>(args);
}
