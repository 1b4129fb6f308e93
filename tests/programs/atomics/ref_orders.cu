// cuda::atomic_ref at every scope with every order its operations take, on 32-bit integers: load,
// store, exchange, both compare_exchange forms, every fetch_ operation.
#include <algorithm>
#include <cuda/atomic>

#include "arrays.h"

namespace {


template <cuda::thread_scope kScope>
using Ref = cuda::atomic_ref<unsigned, kScope>;

template <cuda::thread_scope kScope>
__device__ void Run(unsigned* places, cuda::memory_order order, cuda::memory_order load_order,
                    cuda::memory_order store_order) {
  const unsigned thread = threadIdx.x;
  Ref<kScope>(places[0]).fetch_add(thread, order);
  Ref<kScope>(places[1]).fetch_sub(thread, order);
  Ref<kScope>(places[2]).fetch_and(~(1u << thread % 20), order);
  Ref<kScope>(places[3]).fetch_or(1u << thread % 30, order);
  Ref<kScope>(places[4]).fetch_xor(thread * 0x01010101u, order);
  Ref<kScope>(places[5]).fetch_max(thread * 7 % 61, order);
  Ref<kScope>(places[6]).fetch_min(thread * 7 % 61 + 3, order);
  // A sum by compare-and-swap; strong and weak in turns.
  unsigned seen = Ref<kScope>(places[7]).load(load_order);
  while (true) {
    const bool done =
        thread % 2
            ? Ref<kScope>(places[7]).compare_exchange_strong(seen, seen + thread, order, load_order)
            : Ref<kScope>(places[7]).compare_exchange_weak(seen, seen + thread, order);
    if (done) break;
  }
  // Exchanges hand one token round; the sum of what was there stays.
  const unsigned old = Ref<kScope>(places[8]).exchange(thread + 1, order);
  atomicAdd(&places[9], old);
  Ref<kScope>(places[10 + thread]).store(thread * 3, store_order);
}

template <cuda::thread_scope kScope>
__global__ void Orders(unsigned* places, int which) {
  using namespace cuda;
  switch (which) {
    case 0:
      Run<kScope>(places, memory_order_relaxed, memory_order_relaxed, memory_order_relaxed);
      break;
    case 1:
      Run<kScope>(places, memory_order_acquire, memory_order_acquire, memory_order_relaxed);
      break;
    case 2:
      Run<kScope>(places, memory_order_release, memory_order_relaxed, memory_order_release);
      break;
    case 3:
      Run<kScope>(places, memory_order_acq_rel, memory_order_acquire, memory_order_release);
      break;
    default:
      Run<kScope>(places, memory_order_seq_cst, memory_order_seq_cst, memory_order_seq_cst);
  }
}

template <cuda::thread_scope kScope>
void Check(unsigned threads) {
  std::vector<unsigned> start(10 + threads, 0);
  start[2] = ~0u;
  start[6] = 1000;
  std::vector<unsigned> expected = start;
  for (unsigned thread = 0; thread < threads; ++thread) {
    expected[0] += thread;
    expected[1] -= thread;
    expected[2] &= ~(1u << thread % 20);
    expected[3] |= 1u << thread % 30;
    expected[4] ^= thread * 0x01010101u;
    expected[5] = std::max(expected[5], thread * 7 % 61);
    expected[6] = std::min(expected[6], thread * 7 % 61 + 3);
    expected[7] += thread;
    expected[10 + thread] = thread * 3;
  }
  for (int which = 0; which < 5; ++which) {
    unsigned* places = ToDevice(start);
    Orders<kScope><<<1, threads>>>(places, which);
    std::vector<unsigned> got = ToHost(places, start.size());
    REQUIRE(got[8] + got[9] == threads * (threads + 1) / 2, "exchange, order %d", which);
    got[8] = got[9] = 0;
    REQUIRE_SAME(got, expected);
  }
}

}  // namespace

int main() {
  Check<cuda::thread_scope_thread>(1);  // promises nothing to other threads
  Check<cuda::thread_scope_block>(64);
  Check<cuda::thread_scope_device>(64);
  Check<cuda::thread_scope_system>(64);
  std::puts("PASS ref_orders");
}
