// Deadlocks: one thread of an OpenMP team polls pinned memory for an answer that never comes, the
// others wait for it in an ordered region and at the end of a loop.
// nvcc: -std=c++20 -Xcompiler -fopenmp

#include "host_echo.h"

int main() {
  Mailbox* mailbox = StartEcho();
  int sum = 0;
#pragma omp parallel for ordered num_threads(3) schedule(static, 1) reduction(+ : sum)
  for (int i = 0; i < 6; ++i) {
    if (i == 2) {
      while (Answer(mailbox) == 0) {
      }
    }
#pragma omp ordered
    sum += i;
  }
  std::printf("the deadlock did not happen\n");
  return 0;
}
