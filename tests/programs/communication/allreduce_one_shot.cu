// One-shot all-reduce: each rank copies its input into a buffer its peers can read, tells every
// peer, waits for every peer and sums all buffers. Calls run back to back without draining. Usage:
// allreduce_one_shot [ranks]
//
// Why two buffers suffice: call e + 2 writes the buffer of call e. A rank gets there only after its
// call e + 1 has seen every peer's flag e + 1, and a peer raises that after its call e has ended.
//
// run 2: --devices 2 | 2
// run 3: --devices 3 | 3
// run 4: --devices 4 | 4
// run 5: --devices 5 | 5
// run 6: --devices 6 | 6
// run 7: --devices 7 | 7
// run 8: --devices 8 | 8
#include <thread>
#include <vector>

#include "check.h"
#include "flags.h"

namespace {

constexpr int kMaxRanks = 8;
constexpr int kBlocks = 2;
constexpr int kThreads = 128;
constexpr int kCount = 1000;
constexpr int kCalls = 5;

struct Shared {
  uint32_t flags[kBlocks][kMaxRanks];  // the last call each peer's block has published
  float buffer[2][kCount];
};

struct Peers {
  Shared* rank[kMaxRanks];
};

// Small integers, so that a float sum is exact in any order.
float Input(int rank, int call, int i) { return float((rank * 31 + call * 17 + i) % 1009 - 500); }

__global__ void AllReduce(Peers peers, int rank, int ranks, uint32_t epoch, const float* input,
                          float* output) {
  const int first = blockIdx.x * kThreads + threadIdx.x;
  const int parity = epoch & 1;
  Shared* mine = peers.rank[rank];
  for (int i = first; i < kCount; i += kBlocks * kThreads) mine->buffer[parity][i] = input[i];

  // Block b of every rank copies and sums the same elements, so blocks meet only their namesakes.
  __syncthreads();
  if (threadIdx.x < ranks) {
    StoreReleaseSys(&peers.rank[threadIdx.x]->flags[blockIdx.x][rank], epoch);
    while (LoadAcquireSys(&mine->flags[blockIdx.x][threadIdx.x]) < epoch) {
    }
  }
  __syncthreads();

  for (int i = first; i < kCount; i += kBlocks * kThreads) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += peers.rank[r]->buffer[parity][i];
    output[i] = sum;
  }
}

void RunRank(int rank, int ranks, Peers peers, const float* inputs, float* outputs) {
  CUDA_CHECK(cudaSetDevice(rank));
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int call = 0; call < kCalls; ++call) {
    AllReduce<<<kBlocks, kThreads, 0, stream>>>(peers, rank, ranks, call + 1,
                                                inputs + call * kCount, outputs + call * kCount);
    CUDA_CHECK_LAUNCH();
  }
  std::vector<float> got(kCalls * kCount);
  CUDA_CHECK(cudaMemcpyAsync(got.data(), outputs, got.size() * sizeof(float),
                             cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaStreamDestroy(stream));
  for (int call = 0; call < kCalls; ++call) {
    for (int i = 0; i < kCount; ++i) {
      float sum = 0;
      for (int r = 0; r < ranks; ++r) sum += Input(r, call, i);
      REQUIRE(got[call * kCount + i] == sum, "rank %d, call %d, element %d: got %g, expected %g",
              rank, call, i, got[call * kCount + i], sum);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = int(Argument(argc, argv, 1, kMaxRanks));
  REQUIRE(ranks >= 2 && ranks <= kMaxRanks, "ranks must be 2..%d, not %d", kMaxRanks, ranks);
  RequireDevices(ranks);
  Peers peers{};
  float* inputs[kMaxRanks];
  float* outputs[kMaxRanks];
  for (int rank = 0; rank < ranks; ++rank) {
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer != rank) EnablePeer(rank, peer);
    }
    peers.rank[rank] = ZeroedOn<Shared>(rank);
    inputs[rank] = ZeroedOn<float>(rank, kCalls * kCount);
    outputs[rank] = ZeroedOn<float>(rank, kCalls * kCount);
    std::vector<float> input(kCalls * kCount);
    for (int k = 0; k < kCalls * kCount; ++k) input[k] = Input(rank, k / kCount, k % kCount);
    Upload(inputs[rank], input.data(), input.size());
  }

  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(RunRank, rank, ranks, peers, inputs[rank], outputs[rank]);
  }
  for (std::thread& thread : threads) thread.join();

  for (int rank = 0; rank < ranks; ++rank) {
    CUDA_CHECK(cudaFree(peers.rank[rank]));
    CUDA_CHECK(cudaFree(inputs[rank]));
    CUDA_CHECK(cudaFree(outputs[rank]));
  }
  std::printf("PASS allreduce_one_shot: %d ranks, %d calls of %d\n", ranks, kCalls, kCount);
  return 0;
}
