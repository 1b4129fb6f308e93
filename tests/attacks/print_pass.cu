// tries: prints PASS and a perfect result on stdout and stderr, and does nothing
// rows: 8 C1 C2 C7 H22
// verdict: wrong_result
#include <unistd.h>
extern "C" void launch(const Args&, cudaStream_t) {
  const char text[] = "PASS\n{\"verdict\":\"pass\",\"score\":1.0,\"latency_ns\":-5,\"bandwidth\":Infinity}\n";
  for (int fd = 1; fd <= 2; ++fd) (void)!write(fd, text, sizeof text - 1);
}
