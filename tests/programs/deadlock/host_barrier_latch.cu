// Deadlocks: threads wait for one another in a std::barrier and a std::latch; the last of them
// waits for the device first.
// nvcc: -std=c++20
#include <barrier>
#include <latch>
#include <thread>

#include "host_echo.h"

int main() {
  Mailbox* mailbox = StartEcho();
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
