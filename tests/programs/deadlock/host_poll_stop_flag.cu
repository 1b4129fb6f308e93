// Deadlocks: a host thread polls for the device's answer until it is told to stop, and the main
// thread tells it only after the device is done. Nobody has sent the request.
// nvcc: -std=c++20
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
