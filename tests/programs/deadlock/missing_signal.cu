// Deadlocks: device 0 writes the payload into device 1's memory but nobody ever raises the flag.
#include "check.h"

namespace {

struct Board {
  uint32_t flag;
  uint32_t payload;
  uint32_t got;
};

__global__ void Producer(Board* board) {
  board->payload = 42;
  __threadfence_system();
}

__global__ void Consumer(Board* board) {
  volatile uint32_t* flag = &board->flag;
  while (*flag == 0) {  // expect: waits here
  }
  __threadfence_system();
  board->got = board->payload;
}

}  // namespace

int main() {
  RequireDevices(2);
  EnablePeer(0, 1);
  Board* board = ZeroedOn<Board>(1);
  Consumer<<<1, 1>>>(board);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaSetDevice(0));
  Producer<<<1, 1>>>(board);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaSetDevice(1));
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen: got %u\n", Fetch(board).got);
  return 0;
}
