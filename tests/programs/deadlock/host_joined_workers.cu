// Deadlocks: the main thread joins its workers; one of them polls for the device's answer, another
// takes a lock that this one holds.
// nvcc: -std=c++20
#include <mutex>
#include <thread>

#include "host_echo.h"

int main() {
  Mailbox* mailbox = StartEcho();
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
