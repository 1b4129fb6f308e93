// A kernel that answers the host through pinned memory, for programs about how host threads wait.
#pragma once

#include <atomic>

#include "check.h"
#include "flags.h"

struct Mailbox {
  uint32_t request, answer;
};

inline Mailbox* NewMailbox() {
  void* memory = nullptr;
  CUDA_CHECK(cudaHostAlloc(&memory, sizeof(Mailbox), cudaHostAllocMapped | cudaHostAllocPortable));
  Mailbox* mailbox = static_cast<Mailbox*>(memory);
  mailbox->request = mailbox->answer = 0;
  return mailbox;
}

__global__ void Echo(Mailbox* mailbox) {
  while (LoadAcquireSys(&mailbox->request) == 0) {  // expect: waits here
  }
  StoreReleaseSys(&mailbox->answer, 1);
}

// A mailbox of which device 0 answers the first request.
inline Mailbox* StartEcho() {
  RequireDevices(1);
  Mailbox* mailbox = NewMailbox();
  Echo<<<1, 1>>>(mailbox);
  CUDA_CHECK_LAUNCH();
  return mailbox;
}

inline void Send(Mailbox* mailbox, uint32_t value) {
  std::atomic_ref<uint32_t>(mailbox->request).store(value, std::memory_order_release);
}

inline uint32_t Answer(Mailbox* mailbox) {
  return std::atomic_ref<uint32_t>(mailbox->answer).load(std::memory_order_acquire);
}
