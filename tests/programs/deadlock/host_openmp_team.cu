// Deadlocks: one thread of an OpenMP team waits for a device that never answers, the others for
// that thread at the team's barrier, which libgomp does by a futex of its own.
// nvcc: -std=c++20 -Xcompiler -fopenmp
#include <omp.h>

#include "host_echo.h"

int main() {
  Mailbox* mailbox = StartEcho();
#pragma omp parallel num_threads(3)
  {
#pragma omp barrier
    if (omp_get_thread_num() == 1) CUDA_CHECK(cudaDeviceSynchronize());
#pragma omp barrier
  }
  std::printf("the deadlock did not happen\n");
  return 0;
}
