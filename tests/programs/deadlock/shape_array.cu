// One thread polls the flags of all peers, again from the first until none is missing.
// answered: the same ends when the flag comes
#include "poll_shape.h"

namespace {

__global__ void Wait(const uint32_t* flags, int peers) {
  for (bool all = false; !all;) {
    all = true;
    for (int peer = 0; peer < peers; ++peer) {
      if (LoadAcquireSys(flags + peer) == 0) all = false;  // expect: waits here
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 8, [](uint32_t* flags) { Wait<<<1, 1>>>(flags, 8); });
}
