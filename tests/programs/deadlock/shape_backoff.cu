// Polls with a sleep that doubles from round to round up to a limit.
// answered: the same ends when the flag comes
#include "poll_shape.h"

namespace {

__global__ void Wait(const uint32_t* flags) {
  unsigned pause = 32;
  while (LoadAcquireSys(flags) == 0) {  // expect: waits here
    __nanosleep(pause);
    if (pause < 4096) pause *= 2;
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 1, [](uint32_t* flags) { Wait<<<2, 32>>>(flags); });
}
