// Deadlocks: the main thread joins its workers; one of them polls for the device's answer, another
// takes a lock that this one holds.
// nvcc: -std=c++20
#include <mutex>
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
  std::mutex mutex;
  std::atomic<bool> held{false};
  std::thread poller([&] {
    std::lock_guard lock(mutex);
    held = true;
    held.notify_all();
    while (Answer(mailbox) == 0) {
    }
  });
  std::thread sender([&] {
    held.wait(false);
    std::lock_guard lock(mutex);
    Send(mailbox, 1);
  });
  poller.join();
  sender.join();
  std::printf("the deadlock did not happen\n");
  return 0;
}
