// The host's side of programs that show one shape of poll. Without an argument the flag that the
// kernel waits for never comes; with `answered` the other device raises it.
#pragma once

#include <cstring>

#include "check.h"
#include "flags.h"

__global__ void RaiseFlags(uint32_t* flags, int count, uint32_t value) {
  for (int i = 0; i < count; ++i) StoreReleaseSys(flags + i, value);
}

// Calls `launch(flags)` on device 0, with `count` zeroed words there. Before the hang device 1
// raises all flags but the last, so that a report has a writer to name.
template <class Launch>
int RunShape(int argc, char** argv, int count, Launch launch) {
  const bool answered = argc > 1 && std::strcmp(argv[1], "answered") == 0;
  RequireDevices(2);
  EnablePeer(1, 0);
  uint32_t* flags = ZeroedOn<uint32_t>(0, count);
  launch(flags);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaSetDevice(1));
  RaiseFlags<<<1, 1>>>(flags, answered ? count : count - 1, 1);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf(answered ? "every wait has ended\n" : "the deadlock did not happen\n");
  return 0;
}
