// Deadlocks in the poll of NCCL's Simple protocol: a thread waits for a step counter, counts its
// rounds, and looks every so many rounds whether the host has asked it to give up. Neither comes.
#include "check.h"

namespace {

constexpr int kRoundsBeforeLook = 1000;

struct Connection {
  uint64_t tail;
  uint32_t abort;
};

__global__ void Receive(Connection* connection, uint64_t step, int* output) {
  if (threadIdx.x == 0) {
    volatile uint64_t* tail = &connection->tail;
    volatile uint32_t* abort = &connection->abort;
    int rounds = 0;
    while (*tail < step) {  // expect: waits here
      if (++rounds == kRoundsBeforeLook) {
        rounds = 0;
        if (*abort != 0) break;
      }
    }
  }
  __syncthreads();
  output[threadIdx.x] = 1;
}

}  // namespace

int main() {
  RequireDevices(1);
  Connection* connection = ZeroedOn<Connection>(0);
  int* output = ZeroedOn<int>(0, 64);
  Receive<<<1, 64>>>(connection, 1, output);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen\n");
  return 0;
}
