// Deadlocks: a block that finds the table full returns from inside the critical section and keeps
// the lock, so the next one waits for ever.
#include "check.h"

namespace {

constexpr int kBlocks = 8;
constexpr uint32_t kCapacity = 4;

struct Table {
  uint32_t lock;
  uint32_t used;
  uint32_t owner[kCapacity];
};

__global__ void Insert(Table* table) {
  while (atomicCAS(&table->lock, 0, 1) != 0) __nanosleep(50);  // expect: waits here
  __threadfence();
  if (table->used == kCapacity) return;
  table->owner[table->used++] = blockIdx.x;
  __threadfence();
  atomicExch(&table->lock, 0);
}

}  // namespace

int main() {
  RequireDevices(1);
  Table* table = ZeroedOn<Table>(0);
  Insert<<<kBlocks, 1>>>(table);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen: %u used\n", Fetch(table).used);
  return 0;
}
