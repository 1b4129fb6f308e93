// Deadlocks in the poll of NCCL's LL128: a warp loads lines of 128 bytes, the lanes that have a
// flag look at it, and the warp votes whether to load again. The flags of one line never come.
#include "check.h"

namespace {

struct Line {
  uint4 parts[8];  // the last word but one is the flag
};

__global__ void Receive(const Line* lines, uint32_t flag, uint32_t* output) {
  const int line = threadIdx.x / 8, part = threadIdx.x % 8;
  uint4 v;
  bool again;
  do {
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(&lines[line].parts[part])  // expect: waits here
                 : "memory");
    again = part == 7 && v.z != flag;
  } while (__any_sync(~0u, again));
  output[threadIdx.x] = v.x + v.y;
}

__global__ void Send(Line* line, uint32_t flag) {
  if (threadIdx.x < 8) {
    asm volatile(
        "st.volatile.global.v4.u32 [%0], {%1, %1, %2, %1};" ::"l"(&line->parts[threadIdx.x]),
        "r"(7), "r"(threadIdx.x == 7 ? flag : 7)
        : "memory");
  }
}

}  // namespace

int main() {
  RequireDevices(2);
  EnablePeer(1, 0);
  Line* lines = ZeroedOn<Line>(0, 8);
  uint32_t* output = ZeroedOn<uint32_t>(0, 64);
  Receive<<<1, 64>>>(lines, 5, output);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaSetDevice(1));
  for (int line = 0; line < 7; ++line) Send<<<1, 32>>>(lines + line, 5);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen\n");
  return 0;
}
