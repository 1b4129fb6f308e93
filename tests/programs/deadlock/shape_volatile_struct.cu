// Polls the flag of a struct of volatile words, and reads the others behind a fence.
// answered: the same ends when the flag comes
#include "poll_shape.h"

namespace {

struct Line {
  volatile uint32_t data[3], flag;
};

__global__ void Wait(const uint32_t* flags, uint32_t* out) {
  const Line* line = reinterpret_cast<const Line*>(flags);
  while (line->flag != 1) {  // expect: waits here
  }
  __threadfence_system();
  *out = line->data[0] + line->data[1] + line->data[2];
}

}  // namespace

int main(int argc, char** argv) {
  return RunShape(argc, argv, 4,
                  [](uint32_t* flags) { Wait<<<1, 1>>>(flags, ZeroedOn<uint32_t>(0)); });
}
