// Polls a word in pinned host memory that the host sets after it has waited for the device.
// answered: the same ends when the flag comes
// nvcc: -std=c++20
#include <cstring>

#include "host_echo.h"

namespace {

__global__ void Wait(Mailbox* mailbox) {
  while (LoadAcquireSys(&mailbox->request) == 0) {  // expect: waits here
    __nanosleep(500);
  }
  StoreReleaseSys(&mailbox->answer, 1);
}

}  // namespace

int main(int argc, char** argv) {
  RequireDevices(1);
  Mailbox* mailbox = NewMailbox();
  Wait<<<4, 32>>>(mailbox);
  CUDA_CHECK_LAUNCH();
  if (argc > 1 && std::strcmp(argv[1], "answered") == 0) Send(mailbox, 1);
  CUDA_CHECK(cudaDeviceSynchronize());
  Send(mailbox, 1);
  REQUIRE(Answer(mailbox) == 1, "no answer");
  std::printf("every wait has ended\n");
  return 0;
}
