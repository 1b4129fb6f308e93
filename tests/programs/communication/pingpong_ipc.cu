// Flag ping-pong between two GPUs owned by two processes, over CUDA IPC.
// Usage: pingpong_ipc [rounds]
#include "check.h"
#include "pingpong.h"
#include "two_processes.h"

namespace {

void Play(int rank, Partner partner, uint32_t rounds) {
  RequireDevices(2);
  Mailbox* mine = ZeroedOn<Mailbox>(rank);
  Mailbox* theirs = partner.ExchangeMemory(mine);
  partner.Barrier();

  PingPong<<<1, 32>>>(mine, theirs, rank, rounds);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  const Mailbox end = Fetch(mine);
  REQUIRE(end.flag == rounds, "rank %d: last round %u of %u", rank, end.flag, rounds);
  REQUIRE(end.errors == 0, "rank %d: %u wrong payload words", rank, end.errors);

  CUDA_CHECK(cudaIpcCloseMemHandle(theirs));
  partner.Barrier();  // memory may be freed only after every importer has closed it
  CUDA_CHECK(cudaFree(mine));
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t rounds = Argument(argc, argv, 1, 200);
  const int child =
      RunTwoProcesses([rounds](int rank, Partner partner) { Play(rank, partner, rounds); });
  REQUIRE(child == 0, "rank 1 ended with %d", child);
  std::printf("PASS pingpong_ipc: %u rounds\n", rounds);
  return 0;
}
