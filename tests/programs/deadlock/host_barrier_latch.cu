// Deadlocks: threads wait for one another in a std::barrier and a std::latch; the last of them
// waits for the device first.
// nvcc: -std=c++20
#include <barrier>
#include <latch>
#include <thread>

#include "host_echo.h"

namespace {

__global__ void Echo(Mailbox* mailbox) {
  while (LoadAcquireSys(&mailbox->request) == 0) {  // expect: waits here
  }
  StoreReleaseSys(&mailbox->answer, 1);
}

}  // namespace

int main() {
  RequireDevices(1);
  Mailbox* mailbox = NewMailbox();
  Echo<<<1, 1>>>(mailbox);
  CUDA_CHECK_LAUNCH();
  std::barrier<> barrier(3);
  std::latch latch(2);
  std::thread first([&] {
    barrier.arrive_and_wait();
    latch.count_down();
  });
  std::thread second([&] {
    latch.wait();
    Send(mailbox, 1);
    barrier.arrive_and_wait();
  });
  CUDA_CHECK(cudaDeviceSynchronize());
  latch.count_down();
  barrier.arrive_and_wait();
  first.join();
  second.join();
  std::printf("the deadlock did not happen\n");
  return 0;
}
