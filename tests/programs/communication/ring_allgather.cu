// A ring all-gather by kernels that run on all devices at once: each passes blocks on to its right
// neighbour and raises a flag of system scope there; credits flow back to the left.
//
// run 2: --devices 2 | 2
// run 3: --devices 3 | 3
// run 4: --devices 4 | 4
#include <cuda/atomic>

#include "arrays.h"

namespace {

using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;
constexpr int kThreads = 64, kWords = 500, kMost = 8;

// All on the device that waits on it.
struct Channel {
  unsigned arrived;  // blocks that the left neighbour has stored here
  unsigned credits;  // blocks that the right neighbour has taken over
};

__global__ void Gather(int* mine, int* right, Channel* own, Channel* left_channel,
                       Channel* right_channel, int rank, int ranks) {
  for (int step = 0; step + 1 < ranks; ++step) {
    const int block = (rank - step + ranks) % ranks;
    if (threadIdx.x == 0 && step > 0) {
      // What goes on must be here first, and two blocks at most may be under way.
      while (Flag(own->arrived).load(cuda::memory_order_acquire) < static_cast<unsigned>(step)) {
      }
      Flag(left_channel->credits).fetch_add(1, cuda::memory_order_release);
      while (Flag(own->credits).load(cuda::memory_order_acquire) + 2 <
             static_cast<unsigned>(step)) {
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kWords; i += kThreads)
      right[block * kWords + i] = mine[block * kWords + i];
    __syncthreads();
    if (threadIdx.x == 0) Flag(right_channel->arrived).fetch_add(1, cuda::memory_order_release);
  }
  if (threadIdx.x == 0) {
    while (Flag(own->arrived).load(cuda::memory_order_acquire) < static_cast<unsigned>(ranks - 1)) {
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = static_cast<int>(Argument(argc, argv, 1, 2));
  RequireDevices(ranks);
  int* buffers[kMost];
  Channel* channels[kMost];
  std::vector<int> expected;
  for (int rank = 0; rank < ranks; ++rank) {
    buffers[rank] = ZeroedOn<int>(rank, ranks * kWords);
    channels[rank] = ZeroedOn<Channel>(rank);
    std::vector<int> block;
    for (int i = 0; i < kWords; ++i) block.push_back(rank * 100000 + i);
    Upload(buffers[rank] + rank * kWords, block.data(), block.size());
    expected.insert(expected.end(), block.begin(), block.end());
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer != rank) EnablePeer(rank, peer);
    }
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    CUDA_CHECK(cudaSetDevice(rank));
    Gather<<<1, kThreads>>>(buffers[rank], buffers[right], channels[rank], channels[left],
                            channels[right], rank, ranks);
    CUDA_CHECK_LAUNCH();
  }
  for (int rank = 0; rank < ranks; ++rank) {
    CUDA_CHECK(cudaSetDevice(rank));
    REQUIRE_SAME(ToHost(buffers[rank], expected.size()), expected);
  }
  std::printf("PASS ring_allgather: %d ranks\n", ranks);
}
