// Deadlocks: a host thread polls for the device's answer until it is told to stop, and the main
// thread tells it only after the device is done. Nobody has sent the request.
// nvcc: -std=c++20
#include <thread>

#include "host_echo.h"

int main() {
  Mailbox* mailbox = StartEcho();
  std::atomic<bool> stop{false};
  std::thread poller([&] {
    while (Answer(mailbox) == 0 && !stop.load(std::memory_order_relaxed)) {
    }
  });
  CUDA_CHECK(cudaDeviceSynchronize());
  stop = true;
  poller.join();
  std::printf("the deadlock did not happen\n");
  return 0;
}
