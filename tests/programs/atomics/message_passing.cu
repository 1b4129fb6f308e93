// Data handed over by a flag, with each pair of orders that suffices: release and acquire
// operations, fences with relaxed ones, read-modify-write, a chain over a third block, and
// __threadfence with volatile.
#include <cuda/atomic>

#include "arrays.h"

namespace {

using Flag = cuda::atomic_ref<int, cuda::thread_scope_device>;
constexpr int kWords = 100;

struct Channel {
  int flag, relay, sum;
  int data[kWords];
};

__device__ void Fill(Channel* channel) {
  for (int i = 0; i < kWords; ++i) channel->data[i] = i * i;
}

__device__ void Read(Channel* channel) {
  int sum = 0;
  for (int i = 0; i < kWords; ++i) sum += channel->data[i];
  channel->sum = sum;
}

// Block 0 writes, block 1 reads, block 2 passes on where there is a chain.
__global__ void Pass(Channel* channels) {
  using namespace cuda;
  const bool writer = blockIdx.x == 0, reader = blockIdx.x == 1;
  Channel* channel = channels;
  if (writer) {
    Fill(channel);
    Flag(channel->flag).store(1, memory_order_release);
  } else if (reader) {
    while (!Flag(channel->flag).load(memory_order_acquire)) {
    }
    Read(channel);
  }
  ++channel;
  if (writer) {
    Fill(channel);
    atomic_thread_fence(memory_order_release, thread_scope_device);
    Flag(channel->flag).store(1, memory_order_relaxed);
  } else if (reader) {
    while (!Flag(channel->flag).load(memory_order_relaxed)) {
    }
    atomic_thread_fence(memory_order_acquire, thread_scope_device);
    Read(channel);
  }
  ++channel;
  if (writer) {
    Fill(channel);
    Flag(channel->flag).fetch_add(1, memory_order_acq_rel);
  } else if (reader) {
    int expected = 1;
    while (!Flag(channel->flag).compare_exchange_strong(expected, 2, memory_order_acq_rel))
      expected = 1;
    Read(channel);
  }
  ++channel;
  if (writer) {
    Fill(channel);
    Flag(channel->flag).store(1, memory_order_release);
  } else if (reader) {
    while (!Flag(channel->relay).load(memory_order_acquire)) {
    }
    Read(channel);
  } else {
    while (!Flag(channel->flag).load(memory_order_acquire)) {
    }
    Flag(channel->relay).store(1, memory_order_release);
  }
  ++channel;
  if (writer) {
    Fill(channel);
    __threadfence();
    *const_cast<volatile int*>(&channel->flag) = 1;
  } else if (reader) {
    while (!*const_cast<volatile int*>(&channel->flag)) {
    }
    __threadfence();
    Read(channel);
  }
  ++channel;
  if (writer) {
    Fill(channel);
    Flag(channel->flag).store(1, memory_order_seq_cst);
  } else if (reader) {
    while (!Flag(channel->flag).load(memory_order_seq_cst)) {
    }
    Read(channel);
  }
}

}  // namespace

int main() {
  constexpr int kChannels = 6;
  Channel* channels = Zeroed<Channel>(kChannels);
  Pass<<<3, 1>>>(channels);
  CUDA_CHECK(cudaDeviceSynchronize());
  int expected = 0;
  for (int i = 0; i < kWords; ++i) expected += i * i;
  for (int i = 0; i < kChannels; ++i) {
    const int sum = Fetch(channels + i).sum;
    REQUIRE(sum == expected, "channel %d: %d, expected %d", i, sum, expected);
  }
  std::printf("PASS message_passing: %d channels\n", kChannels);
}
