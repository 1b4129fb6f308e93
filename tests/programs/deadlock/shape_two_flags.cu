// Polls two flags by turns until both are up, each with its own load.
// answered: the same ends when the flag comes
#include "poll_shape.h"

namespace {

__global__ void Wait(const uint32_t* flags) {
  bool first = false, second = false;
  for (int turn = 0; !first || !second; turn ^= 1) {
    if (turn == 0) {
      first = first || LoadAcquireSys(flags) != 0;
    } else {
      second = second || LoadAcquireSys(flags + 1) != 0;  // expect: waits here
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 2, [](uint32_t* flags) { Wait<<<1, 1>>>(flags); });
}
