// Deadlocks: a thread waits on a condition variable until it may send the request, and the main
// thread notifies it after the device is done.
// nvcc: -std=c++20
#include <condition_variable>
#include <mutex>
#include <thread>

#include "host_echo.h"

int main() {
  Mailbox* mailbox = StartEcho();
  std::mutex mutex;
  std::condition_variable condition;
  bool go = false;
  std::thread sender([&] {
    std::unique_lock lock(mutex);
    condition.wait(lock, [&] { return go; });
    Send(mailbox, 1);
  });
  CUDA_CHECK(cudaDeviceSynchronize());
  {
    std::lock_guard lock(mutex);
    go = true;
  }
  condition.notify_one();
  sender.join();
  std::printf("the deadlock did not happen\n");
  return 0;
}
