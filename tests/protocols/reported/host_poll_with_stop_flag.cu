// A proxy thread of the host polls a word of pinned memory and looks at an ordinary stop flag now and then. Kernels send it
// numbers; then it is stopped and joined while its poll finds nothing. It must end at once, every time.
// EXPECT 1 none: the kernel stores with release instead of a fence and volatile
#include <atomic>
#include <chrono>
#include <thread>
#include "common.h"
constexpr int ROUNDS = 4, MESSAGES = 3;
__global__ void Send(unsigned long long* word, unsigned long long value) {
#if BUG == 1
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
#else
  __threadfence_system();
  *(volatile unsigned long long*)word = value;
#endif
}
int main() {
  peers(1);
  unsigned long long received = 0;
  for (int round = 0; round < ROUNDS; ++round) {
    unsigned long long* word;
    CK(cudaHostAlloc(&word, sizeof *word, cudaHostAllocMapped));
    *word = 0;
    std::atomic<bool> stop{false};
    std::atomic<int> count{0};
    std::thread proxy([&] {
      CK(cudaSetDevice(0));
      for (unsigned turn = 1;; ++turn) {
        if (turn % 512 == 0 && stop.load(std::memory_order_acquire)) return;
        const unsigned long long value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (value == 0) continue;
        received += value;
        __atomic_store_n(word, 0ull, __ATOMIC_RELEASE);
        count.fetch_add(1);
      }
    });
    for (int i = 1; i <= MESSAGES; ++i) {
      Send<<<1, 1>>>(word, i);
      CK(cudaDeviceSynchronize());
      while (count.load() < i) std::this_thread::yield();
    }
    // Now and then the proxy gets time to be deep in its poll.
    if (round % 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stop.store(true, std::memory_order_release);
    proxy.join();
    CK(cudaFreeHost(word));
  }
  return finish(received != ROUNDS * MESSAGES * (MESSAGES + 1) / 2, 1);
}
