// Mutual exclusion on a device: a test-and-set lock, a ticket lock and a semaphore, taken by single
// threads of many blocks around plain data; a reader must never see half an update.
#include <cuda/atomic>

#include "arrays.h"

namespace {

using Word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

struct Board {
  unsigned lock, next, serving, permits;
  unsigned a, b, inside, most, broken;
};

__device__ void Update(Board* board) {
  if (board->a != board->b) ++board->broken;
  ++board->a;
  __nanosleep(20);
  ++board->b;
}

__global__ void TestAndSet(Board* board, int rounds) {
  if (threadIdx.x % 16) return;
  for (int round = 0; round < rounds; ++round) {
    while (Word(board->lock).exchange(1, cuda::memory_order_acquire)) __nanosleep(50);
    Update(board);
    Word(board->lock).store(0, cuda::memory_order_release);
  }
}

__global__ void Ticket(Board* board, int rounds) {
  if (threadIdx.x % 32) return;
  for (int round = 0; round < rounds; ++round) {
    const unsigned mine = Word(board->next).fetch_add(1, cuda::memory_order_relaxed);
    while (Word(board->serving).load(cuda::memory_order_acquire) != mine) {
    }
    Update(board);
    Word(board->serving).store(mine + 1, cuda::memory_order_release);
  }
}

__global__ void Semaphore(Board* board) {
  if (threadIdx.x) return;
  unsigned seen = Word(board->permits).load(cuda::memory_order_relaxed);
  while (seen == 0 ||
         !Word(board->permits).compare_exchange_weak(seen, seen - 1, cuda::memory_order_acquire)) {
    if (seen == 0) seen = Word(board->permits).load(cuda::memory_order_relaxed);
  }
  const unsigned inside = Word(board->inside).fetch_add(1, cuda::memory_order_relaxed) + 1;
  Word(board->most).fetch_max(inside, cuda::memory_order_relaxed);
  __nanosleep(500);
  Word(board->inside).fetch_sub(1, cuda::memory_order_relaxed);
  Word(board->permits).fetch_add(1, cuda::memory_order_release);
}

}  // namespace

int main() {
  constexpr unsigned kBlocks = 5, kThreads = 64, kRounds = 6;
  Board* board = Zeroed<Board>(1);
  TestAndSet<<<kBlocks, kThreads>>>(board, kRounds);
  CUDA_CHECK(cudaDeviceSynchronize());
  Board got = Fetch(board);
  REQUIRE(got.a == kBlocks * 4 * kRounds && got.a == got.b && !got.broken,
          "test-and-set: %u %u, %u", got.a, got.b, got.broken);
  Ticket<<<kBlocks, kThreads>>>(board, kRounds);
  CUDA_CHECK(cudaDeviceSynchronize());
  got = Fetch(board);
  REQUIRE(got.a == kBlocks * 6 * kRounds && got.a == got.b && !got.broken, "ticket: %u %u, %u",
          got.a, got.b, got.broken);
  REQUIRE(got.next == got.serving && got.next == kBlocks * 2 * kRounds, "%u tickets", got.next);

  Board start = {};
  start.permits = 3;
  Upload(board, &start, 1);
  Semaphore<<<40, kThreads>>>(board);
  CUDA_CHECK(cudaDeviceSynchronize());
  got = Fetch(board);
  REQUIRE(got.permits == 3 && got.inside == 0 && got.most >= 1 && got.most <= 3,
          "semaphore: %u permits, %u inside, %u at most", got.permits, got.inside, got.most);
  std::puts("PASS locks");
}
