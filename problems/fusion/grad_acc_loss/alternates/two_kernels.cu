// Two kernels: the blocks of the first one send their sums as words with the number of the call,
// those of the second one wait for the words of all blocks of all ranks. The end of the first
// kernel keeps sums and outputs apart, so that both may have any grid. Two sets, used in turn: a
// rank leaves call k with words of call k of all ranks, which have left call k - 1.
#include <allranks/flags.h>

constexpr int kBlocks = 4, kThreads = 256, kWords = kMaxRanks * kBlocks;

struct Control {
  std::uint32_t calls;
  std::uint64_t sums[2][kWords], counts[2][kWords];
};

__global__ void AddUp(Args args) {
  __shared__ float sum, count;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  if (threadIdx.x == 0) sum = count = 0;
  __syncthreads();
  float s = 0, c = 0;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += kBlocks * kThreads) {
    s += args.mask[i] * args.loss[i];
    c += args.mask[i];
  }
  for (int d = 16; d > 0; d /= 2) {
    s += __shfl_xor_sync(~0u, s, d);
    c += __shfl_xor_sync(~0u, c, d);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&sum, s);
    atomicAdd(&count, c);
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    const int at = args.rank * kBlocks + blockIdx.x;
    const std::uint64_t epoch = std::uint64_t{call} << 32;
    allranks::StoreRelaxedSys(&peer->sums[call & 1][at], epoch | __float_as_uint(sum));
    allranks::StoreRelaxedSys(&peer->counts[call & 1][at], epoch | __float_as_uint(count));
  }
}

__device__ float Receive(const std::uint64_t* from, std::uint32_t call) {
  std::uint64_t word;
  do {
    word = allranks::LoadRelaxedSys(from);
  } while (word >> 32 != call);
  return __uint_as_float(static_cast<std::uint32_t>(word));
}

__global__ void Write(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  const int lane = threadIdx.x % 32;
  float sum = 0, count = 0;
  if (lane < args.world * kBlocks) {
    sum = Receive(&mine->sums[call & 1][lane], call);
    count = Receive(&mine->counts[call & 1][lane], call);
  }
  for (int d = 16; d > 0; d /= 2) {
    sum += __shfl_xor_sync(~0u, sum, d);
    count += __shfl_xor_sync(~0u, count, d);
  }
  const std::int64_t first = blockIdx.x * blockDim.x + threadIdx.x;
  for (std::int64_t i = first; i < args.n; i += gridDim.x * blockDim.x) {
    args.grad[i] = args.mask[i] != 0 ? args.world / count : 0;
  }
  if (first == 0) args.mean[0] = count > 0 ? __fdividef(sum, count) : 0;
}

__global__ void Advance(Args args) { ++reinterpret_cast<Control*>(args.scratch)->calls; }

extern "C" void launch(const Args& args, cudaStream_t stream) {
  AddUp<<<kBlocks, kThreads, 0, stream>>>(args);
  Write<<<8, 128, 0, stream>>>(args);
  Advance<<<1, 1, 0, stream>>>(args);
}
