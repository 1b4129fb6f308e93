// Two threads take turns through cuda::atomic_ref's wait and notify: first two blocks of one kernel
// at device scope, then two kernels on two devices at system scope.
// Usage: atomic_wait_notify [rounds]
#include <cuda/atomic>

#include "check.h"

namespace {

constexpr int kMaxRounds = 1000;

struct Table {
  int turn;
  uint32_t chain[2 * kMaxRounds + 1];  // each made from the one before it, by the other side
};

__host__ __device__ uint32_t Next(uint32_t previous, int side) {
  return previous * 1664525u + 1013904223u + side;
}

template <cuda::thread_scope Scope>
__device__ void TakeTurns(Table* table, int side, int rounds) {
  cuda::atomic_ref<int, Scope> turn(table->turn);
  for (int mine = side; mine < 2 * rounds; mine += 2) {
    int seen = turn.load(cuda::memory_order_acquire);
    while (seen != mine) {
      turn.wait(seen, cuda::memory_order_acquire);
      seen = turn.load(cuda::memory_order_acquire);
    }
    table->chain[mine + 1] = Next(table->chain[mine], side);
    turn.store(mine + 1, cuda::memory_order_release);
    turn.notify_all();
  }
}

__global__ void TwoBlocks(Table* table, int rounds) {
  TakeTurns<cuda::thread_scope_device>(table, blockIdx.x, rounds);
}

__global__ void OneSide(Table* table, int side, int rounds) {
  TakeTurns<cuda::thread_scope_system>(table, side, rounds);
}

void CheckAndFree(const char* what, Table* table, int rounds) {
  const Table end = Fetch(table);
  REQUIRE(end.turn == 2 * rounds, "%s: %d turns, expected %d", what, end.turn, 2 * rounds);
  uint32_t expected = 0;
  for (int t = 0; t < 2 * rounds; ++t) {
    expected = Next(expected, t % 2);
    REQUIRE(end.chain[t + 1] == expected, "%s: turn %d: got %u, expected %u", what, t,
            end.chain[t + 1], expected);
  }
  CUDA_CHECK(cudaFree(table));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = int(Argument(argc, argv, 1, 50));
  REQUIRE(rounds <= kMaxRounds, "at most %d rounds", kMaxRounds);
  RequireDevices(2);
  EnablePeer(1, 0);

  Table* table = ZeroedOn<Table>(0);
  TwoBlocks<<<2, 1>>>(table, rounds);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  CheckAndFree("device scope", table, rounds);

  table = ZeroedOn<Table>(0);
  for (int side = 0; side < 2; ++side) {
    CUDA_CHECK(cudaSetDevice(side));
    OneSide<<<1, 1>>>(table, side, rounds);
    CUDA_CHECK_LAUNCH();
  }
  for (int side = 0; side < 2; ++side) {
    CUDA_CHECK(cudaSetDevice(side));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  CheckAndFree("system scope", table, rounds);
  std::printf("PASS atomic_wait_notify: %d rounds at each scope\n", rounds);
  return 0;
}
