// printf in kernels: every kind of conversion, the order within a thread, strings, 64-bit numbers
// and the return value. The program reads its own standard output back from a pipe.
#include <unistd.h>
#include <string>

#include "arrays.h"

namespace {

__global__ void Formats(int* returned) {
  returned[0] = printf("plain\n");
  returned[1] = printf("%d %i %u|%5d|%-5d|%05d|%+d\n", -1, 2, 3u, 42, 42, 42, 42);
  printf("%x %X %o %#x %08x\n", 255, 255, 8, 255, 0xbeef);
  printf("%lld %llu %llx\n", -1234567890123ll, 18446744073709551615ull, 0x123456789abcdefull);
  printf("%f %.2f %e %g %10.3f|\n", 1.5, 2.345, 12345.678, 0.0001, -3.14159);
  printf("%c%c %s %10s|%-6s|%%\n", 'o', 'k', "text", "right", "left");
  printf("%hhd %hd %ld\n", 300, 70000, 5000000000l);
  printf("%*d|%.*f\n", 6, 7, 3, 2.5);
  returned[2] = printf("no newline");
  printf("\n");
}

__global__ void PerThread() {
  if (threadIdx.x % 2) {
    printf("odd %u\n", threadIdx.x);
  } else {
    printf("even %u of %u\n", threadIdx.x, blockDim.x);
  }
}

// What standard output gets while `body` runs.
template <class Body>
std::string Capture(Body body) {
  std::fflush(stdout);
  int ends[2];
  REQUIRE(pipe(ends) == 0, "pipe");
  const int kept = dup(1);
  REQUIRE(dup2(ends[1], 1) == 1, "dup2");
  body();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::fflush(stdout);
  REQUIRE(dup2(kept, 1) == 1, "dup2 back");
  close(kept);
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, got);
  close(ends[0]);
  return text;
}

}  // namespace

int main() {
  int* returned = Unwritten<int>(3);
  const std::string text = Capture([&] { Formats<<<1, 1>>>(returned); });
  const std::string expected =
      "plain\n"
      "-1 2 3|   42|42   |00042|+42\n"
      "ff FF 10 0xff 0000beef\n"
      "-1234567890123 18446744073709551615 123456789abcdef\n"
      "1.500000 2.35 1.234568e+04 0.0001     -3.142|\n"
      "ok text      right|left  |%\n"
      "44 4464 5000000000\n"
      "     7|2.500\n"
      "no newline\n";
  REQUIRE(text == expected, "printed\n%s\nexpected\n%s", text.c_str(), expected.c_str());
  // printf on the device returns the number of arguments, not of characters.
  const std::vector<int> arguments = {0, 7, 0};
  REQUIRE_SAME(ToHost(returned, 3), arguments);

  // The order between threads is free: each line must come once.
  const std::string lines = Capture([] { PerThread<<<1, 40>>>(); });
  size_t length = 0;
  for (int thread = 0; thread < 40; ++thread) {
    const std::string line = thread % 2 ? "odd " + std::to_string(thread) + "\n"
                                        : "even " + std::to_string(thread) + " of 40\n";
    REQUIRE(("\n" + lines).find("\n" + line) != std::string::npos, "missing: %s", line.c_str());
    length += line.size();
  }
  REQUIRE(lines.size() == length, "more was printed than asked for:\n%s", lines.c_str());
  std::puts("PASS device_printf");
}
