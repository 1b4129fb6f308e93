// TensorRT-LLM's all-reduce kernels with flag barriers. The flag is the number of the call, a
// kernel argument. Barriers come in two kinds. Of the device: the first block releases the flag to
// every peer, every block waits for all ranks. Of the block: each block releases to its namesakes
// and waits for them. Flags and buffers exist twice and are used by odd and even calls in turn.
// one shot: a copy of the stream has filled the buffer, a barrier of the device comes first.
// copy-in: the kernel fills the buffer itself, then a barrier of the block. two shots: copy-in,
// barrier of the block, reduction of a slice in place, barrier of the block, gathering.
//
// The original computes the place of the odd calls' flags from gridDim, which lets calls of
// different sizes overwrite each other's flags: deadlock/slots_by_grid.cu. Here the place is fixed,
// and the calls have different sizes.
//
// run two: --devices 2 | 2 threads
// run four: --devices 4 | 4 threads
// run eight: --devices 8 | 8 threads
#include "sums.h"

namespace {

constexpr int kBlocks = 4, kThreads = 64, kQuads = 480, kCalls = 5;

struct Flags {
  uint32_t device[2][kMaxRanks];
  uint32_t in[2][kBlocks][kMaxRanks];
  uint32_t out[2][kBlocks][kMaxRanks];
};

struct Buffers {
  float4 data[2][kQuads];
};

__device__ void WaitEqual(const uint32_t* flag, uint32_t call) {
  while (LoadAcquireSys(flag) != call) {
  }
}

__device__ void BarrierOfDevices(const Peers<Flags>& flags, int rank, int ranks, uint32_t call) {
  if (threadIdx.x < ranks) {
    if (blockIdx.x == 0) StoreReleaseSys(&flags[threadIdx.x]->device[call % 2][rank], call);
    WaitEqual(&flags[rank]->device[call % 2][threadIdx.x], call);
  }
  __syncthreads();
}

template <class Slots>
__device__ void BarrierOfBlocks(const Peers<Flags>& flags, Slots Flags::* which, int rank,
                                int ranks, uint32_t call) {
  __syncthreads();
  if (threadIdx.x < ranks) {
    StoreReleaseSys(&(flags[threadIdx.x]->*which)[call % 2][blockIdx.x][rank], call);
    WaitEqual(&(flags[rank]->*which)[call % 2][blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
}

__device__ float4 SumOf(const Peers<Buffers>& buffers, int ranks, uint32_t call, int i) {
  float4 sum = make_float4(0, 0, 0, 0);
  for (int r = 0; r < ranks; ++r) Add(sum, buffers[r]->data[call % 2][i]);
  return sum;
}

__global__ void OneShot(Peers<Buffers> buffers, Peers<Flags> flags, int rank, int ranks,
                        uint32_t call, const float4* input, float4* output) {
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  if (input == nullptr) {
    BarrierOfDevices(flags, rank, ranks, call);
  } else {
    for (int i = first; i < kQuads; i += stride) buffers[rank]->data[call % 2][i] = input[i];
    BarrierOfBlocks(flags, &Flags::in, rank, ranks, call);
  }
  for (int i = first; i < kQuads; i += stride) output[i] = SumOf(buffers, ranks, call, i);
}

__global__ void TwoShot(Peers<Buffers> buffers, Peers<Flags> flags, int rank, int ranks,
                        uint32_t call, const float4* input, float4* output) {
  const int part = kQuads / ranks, first = blockIdx.x * kThreads + threadIdx.x;
  const int stride = gridDim.x * kThreads;
  for (int r = 0; r < ranks; ++r) {
    for (int i = first; i < part; i += stride)
      buffers[rank]->data[call % 2][r * part + i] = input[r * part + i];
  }
  BarrierOfBlocks(flags, &Flags::in, rank, ranks, call);
  for (int i = first; i < part; i += stride)
    buffers[rank]->data[call % 2][rank * part + i] = SumOf(buffers, ranks, call, rank * part + i);
  BarrierOfBlocks(flags, &Flags::out, rank, ranks, call);
  for (int step = 0; step < ranks; ++step) {
    const int from = (rank + step) % ranks;
    for (int i = first; i < part; i += stride)
      output[from * part + i] = buffers[from]->data[call % 2][from * part + i];
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    const auto buffers = world.Share<Buffers>();
    const auto flags = world.Share<Flags>();
    uint32_t number = 0;  // of the call, over all kinds
    for (const char* kind : {"one shot", "copy-in", "two shots"}) {
      RunAllReduce(world, kind, kQuads, kCalls, [&](int call, const float4* input, float4* output) {
        const int blocks = 1 + (call * 3 + 1) % kBlocks;
        ++number;
        if (kind[0] == 'o') {
          CUDA_CHECK(cudaMemcpyAsync(buffers[rank]->data[number % 2], input,
                                     kQuads * sizeof(float4), cudaMemcpyDeviceToDevice,
                                     world.stream()));
          input = nullptr;
        }
        (kind[0] == 't' ? TwoShot : OneShot)<<<blocks, kThreads, 0, world.stream()>>>(
            buffers, flags, rank, ranks, number, input, output);
      });
    }
  });
}
