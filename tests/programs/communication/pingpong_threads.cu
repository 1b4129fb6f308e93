// Flag ping-pong between two GPUs of one process, each driven by its own host thread.
// Usage: pingpong_threads [rounds]
#include <thread>

#include "check.h"
#include "pingpong.h"

namespace {

void Play(int rank, Mailbox* mine, Mailbox* theirs, uint32_t rounds) {
  CUDA_CHECK(cudaSetDevice(rank));
  PingPong<<<1, 32>>>(mine, theirs, rank, rounds);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  const Mailbox end = Fetch(mine);
  REQUIRE(end.flag == rounds, "rank %d: last round %u of %u", rank, end.flag, rounds);
  REQUIRE(end.errors == 0, "rank %d: %u wrong payload words", rank, end.errors);
}

}  // namespace

int main(int argc, char** argv) {
  const uint32_t rounds = Argument(argc, argv, 1, 200);
  RequireDevices(2);
  EnablePeer(0, 1);
  EnablePeer(1, 0);
  Mailbox* box[2] = {ZeroedOn<Mailbox>(0), ZeroedOn<Mailbox>(1)};

  std::thread rank1(Play, 1, box[1], box[0], rounds);
  std::thread rank0(Play, 0, box[0], box[1], rounds);
  rank0.join();
  rank1.join();

  CUDA_CHECK(cudaFree(box[0]));
  CUDA_CHECK(cudaFree(box[1]));
  std::printf("PASS pingpong_threads: %u rounds\n", rounds);
  return 0;
}
