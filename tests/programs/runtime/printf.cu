// printf of kernels: every conversion as the host's printf formats it, strings from all memories,
// the count it returns, in order with what the host prints, and only at synchronisation.
#include <unistd.h>

#include <cstring>
#include <string>

#include "check.h"

namespace {

__constant__ char kConstant[] = "constant";
__device__ char device_word[] = "device";

__global__ void Conversions(int* counts) {
  counts[0] = printf("%d %i %u %x %X %o %c%%\n", -7, 42, 7u, 0xbeefu, 0xCAFEu, 8u, 'z');
  counts[1] = printf("%lld %llu %ld %zu %hhd\n", -1234567890123LL, 1ULL << 63, -5L, size_t{99},
                     static_cast<signed char>(-3));
  counts[2] =
      printf("%f %.3f %10.2f|%-10.1f|%e %g %G\n", 1.5, 2.0 / 3, 3.25, 4.75, 12345.678, 1e-7, 1e20f);
  counts[3] = printf("[%5d] [%-5d] [%05d] [%+d] [% d] [%#x] [%.4d]\n", 42, 42, 42, 42, 42, 42, 42);
  counts[4] = printf("[%*d] [%-*d] [%.*f]\n", 6, 1, 6, 2, 2, 3.14159);
  char local[8] = "local";
  __shared__ char shared[8];
  memcpy(shared, "shared", 7);
  counts[5] =
      printf("%s %s %s %s %.2s [%8s]\n", "literal", kConstant, device_word, local, shared, "right");
  counts[6] = printf("%p %p\n", reinterpret_cast<void*>(0x1234), static_cast<void*>(nullptr));
  counts[7] = printf("no arguments\n");
}

__global__ void Threads() {
  if (threadIdx.x % 2 == 1) printf("block %d thread %d\n", blockIdx.x, threadIdx.x);
}

// Everything written to stdout since the last call.
class Capture {
 public:
  Capture() {
    file_ = std::tmpfile();
    REQUIRE(file_ != nullptr, "tmpfile");
    std::fflush(stdout);
    saved_ = dup(1);
    REQUIRE(dup2(fileno(file_), 1) == 1, "dup2");
  }
  std::string Take() {
    std::fflush(stdout);
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = pread(fileno(file_), buffer, sizeof buffer, at_)) > 0; at_ += n)
      text.append(buffer, n);
    return text;
  }
  ~Capture() {
    std::fflush(stdout);
    dup2(saved_, 1);
  }

 private:
  std::FILE* file_;
  int saved_;
  off_t at_ = 0;
};

void ExpectEqual(const std::string& got, const std::string& expected) {
  REQUIRE(got == expected, "got:\n%s\nexpected:\n%s", got.c_str(), expected.c_str());
}

}  // namespace

int main() {
  int* counts = nullptr;
  CUDA_CHECK(cudaMalloc(&counts, 8 * sizeof(int)));
  std::string first, second, third;
  {
    Capture capture;
    std::printf("host before\n");
    Conversions<<<1, 1>>>(counts);
    CUDA_CHECK(cudaDeviceSynchronize());
    std::printf("host after\n");
    first = capture.Take();
    Threads<<<2, 4>>>();
    second = capture.Take();  // nobody has waited yet
    CUDA_CHECK(cudaDeviceSynchronize());
    third = capture.Take();
  }
  char expected[2048];
  std::snprintf(expected, sizeof expected,
                "host before\n"
                "-7 42 7 beef CAFE 10 z%%\n"
                "-1234567890123 9223372036854775808 -5 99 -3\n"
                "1.500000 0.667       3.25|4.8       |1.234568e+04 1e-07 1E+20\n"
                "[   42] [42   ] [00042] [+42] [ 42] [0x2a] [0042]\n"
                "[     1] [2     ] [3.14]\n"
                "literal constant device local sh [   right]\n"
                "%p %p\n"
                "no arguments\n"
                "host after\n",
                reinterpret_cast<void*>(0x1234), static_cast<void*>(nullptr));
  ExpectEqual(first, expected);
  ExpectEqual(second, "");
  // Which block prints first nobody promises.
  const std::string zero = "block 0 thread 1\nblock 0 thread 3\n";
  const std::string one = "block 1 thread 1\nblock 1 thread 3\n";
  ExpectEqual(third, third.compare(0, zero.size(), zero) == 0 ? zero + one : one + zero);
  int host[8];
  CUDA_CHECK(cudaMemcpy(host, counts, sizeof host, cudaMemcpyDeviceToHost));
  const int wanted[8] = {7, 5, 7, 7, 6, 6, 2, 0};
  for (int i = 0; i < 8; ++i)
    REQUIRE(host[i] == wanted[i], "printf %d returned %d, not %d", i, host[i], wanted[i]);
  return 0;
}
