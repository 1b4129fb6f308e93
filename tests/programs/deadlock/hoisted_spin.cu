// Deadlocks although the flag is set: the spin is on an ordinary load, which the compiler may
// hoist, so the loop becomes a branch to itself that reads nothing any more.
#include "check.h"
#include "flags.h"

namespace {

struct Board {
  uint32_t flag;
  uint32_t started;
  uint32_t done;
};

__global__ void Setter(Board* board) {
  while (LoadAcquireSys(&board->started) == 0) {
  }
  const uint64_t start = GlobalTimer();  // the waiter has read the flag once by then
  while (GlobalTimer() - start < 20000) __nanosleep(1000);
  StoreReleaseSys(&board->flag, 1);
}

__global__ void Waiter(Board* board) {
  StoreReleaseSys(&board->started, 1);
  while (board->flag == 0) {  // expect: waits here
  }
  board->done = 1;
}

}  // namespace

int main() {
  RequireDevices(2);
  EnablePeer(0, 1);
  Board* board = ZeroedOn<Board>(1);
  Waiter<<<1, 1>>>(board);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaSetDevice(0));
  Setter<<<1, 1>>>(board);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaSetDevice(1));
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen: done %u\n", Fetch(board).done);
  return 0;
}
