// Lanes of one warp that wait for each other. Each variant ends only if every lane makes progress
// on its own (independent thread scheduling): a machine that runs one side of a branch to its end
// first hangs here.
#include "check.h"

namespace {

constexpr uint32_t kLanes = 32;

struct Board {
  uint32_t data;
  uint32_t flag;
  uint32_t out[kLanes];
};

__device__ uint32_t LoadAcquire(const uint32_t* flag) {
  uint32_t value;
  asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

__device__ void StoreRelease(uint32_t* flag, uint32_t value) {
  asm volatile("st.release.cta.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

// The consumer's branch comes first, the producer stands in the else.
__global__ void ElseBranch(Board* board) {
  if (threadIdx.x == 0) {
    while (LoadAcquire(&board->flag) == 0) {
    }
    board->out[0] = board->data;
  } else if (threadIdx.x == 1) {
    board->data = 42;
    StoreRelease(&board->flag, 1);
  }
}

// The producer's code follows the consumer's loop, where a warp would like to reconverge.
__global__ void AfterTheIf(Board* board) {
  volatile uint32_t* flag = &board->flag;
  if (threadIdx.x == 0) {
    while (*flag == 0) {
    }
    __threadfence_block();
    board->out[0] = board->data;
  }
  if (threadIdx.x == 31) {
    board->data = 42;
    __threadfence_block();
    *flag = 1;
  }
}

// The same in shared memory; the other lanes are already at the barrier that lane 0 reaches last.
__global__ void SyncWarp(Board* board) {
  __shared__ uint32_t data, flag;
  if (threadIdx.x == 0) StoreRelease(&flag, 0);
  __syncwarp();
  if (threadIdx.x == 0) {
    while (LoadAcquire(&flag) == 0) {
    }
    data += 1;
  } else if (threadIdx.x == 7) {
    data = 41;
    StoreRelease(&flag, 1);
  }
  __syncwarp();
  board->out[threadIdx.x] = data;
}

// Lane i waits for lane i + 1: the last lane has to come first.
__global__ void Chain(Board* board) {
  const uint32_t lane = threadIdx.x;
  while (LoadAcquire(&board->flag) != kLanes - 1 - lane) {
  }
  board->out[lane] = board->data;
  board->data += 2;
  StoreRelease(&board->flag, kLanes - lane);
}

// The lanes compete for one lock, and the winner leaves the loop to release it.
__global__ void Lock(Board* board) {
  while (atomicCAS(&board->flag, 0, 1) != 0) {
  }
  __threadfence();
  board->out[threadIdx.x] = board->data;
  board->data += 1;
  __threadfence();
  atomicExch(&board->flag, 0);
}

Board Run(void (*kernel)(Board*)) {
  Board* board = ZeroedOn<Board>(0);
  kernel<<<1, kLanes>>>(board);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  const Board end = Fetch(board);
  CUDA_CHECK(cudaFree(board));
  return end;
}

}  // namespace

int main() {
  RequireDevices(1);
  Board end = Run(ElseBranch);
  REQUIRE(end.out[0] == 42, "else branch: got %u", end.out[0]);
  end = Run(AfterTheIf);
  REQUIRE(end.out[0] == 42, "after the if: got %u", end.out[0]);
  end = Run(SyncWarp);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    REQUIRE(end.out[lane] == 42, "syncwarp: lane %u got %u", lane, end.out[lane]);
  }
  end = Run(Chain);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    REQUIRE(end.out[lane] == 2 * (kLanes - 1 - lane), "chain: lane %u got %u", lane, end.out[lane]);
  }
  end = Run(Lock);
  uint32_t tickets = 0;  // one bit for each value: every lane must have met another one
  for (uint32_t lane = 0; lane < kLanes; ++lane) tickets |= 1u << (end.out[lane] & 31);
  REQUIRE(end.data == kLanes && tickets == ~0u, "lock: %u entries, tickets %x", end.data, tickets);
  std::printf("PASS warp_producer_consumer: 5 variants\n");
  return 0;
}
