// What goes wrong inside kernels, one child process each because the error stays: an address nobody
// owns, an access beyond an allocation, a misaligned one, a trap, a null pointer, and shared memory
// out of range. The error comes with the next synchronisation and then with every call.
//
// finds: not_mapped out_of_bounds misaligned use_after_free
// faults: the errors of kernels that fail
#include <sys/wait.h>
#include <unistd.h>

#include "arrays.h"

namespace {

enum Fault { kNowhere, kBeyond, kMisaligned, kTrap, kNull, kSharedRange, kFreed, kFaults };

__global__ void Commit(int fault, int* memory) {
  __shared__ int board[8];
  const_cast<volatile int*>(board)[threadIdx.x % 8] = 1;
  switch (fault) {
    case kNowhere:
      *reinterpret_cast<int*>(0x123456789000ull) = 1;
      break;
    case kBeyond:
      memory[1 << 24] = 1;
      break;
    case kMisaligned:
      *reinterpret_cast<int*>(reinterpret_cast<char*>(memory) + 2) = 1;
      break;
    case kTrap:
      asm volatile("trap;");
      break;
    case kNull:
      *static_cast<volatile int*>(nullptr) = 1;
      break;
    case kSharedRange:
      const_cast<volatile int*>(board)[threadIdx.x + (1 << 20)] = 1;
      break;
    default:
      memory[threadIdx.x] = 1;
      break;
  }
}

cudaError_t Expected(int fault) {
  switch (fault) {
    case kMisaligned:
      return cudaErrorMisalignedAddress;
    case kTrap:
      return cudaErrorLaunchFailure;
    default:
      return cudaErrorIllegalAddress;
  }
}

void Child(int fault) {
  int* memory = Zeroed<int>(64);
  CUDA_CHECK(cudaDeviceSynchronize());
  if (fault == kFreed) CUDA_CHECK(cudaFree(memory));
  Commit<<<1, 32>>>(fault, memory);
  CUDA_CHECK(cudaGetLastError());
  CUDA_EXPECT(Expected(fault), cudaDeviceSynchronize());
  CUDA_EXPECT(Expected(fault), cudaGetLastError());
  void* more = nullptr;
  CUDA_EXPECT(Expected(fault), cudaMalloc(&more, 16));
}

}  // namespace

int main() {
  for (int fault = 0; fault < kFaults; ++fault) {
    const pid_t child = fork();
    REQUIRE(child >= 0, "fork");
    if (child == 0) {
      Child(fault);
      std::_Exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child, "waitpid");
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0, "fault %d", fault);
  }
  std::printf("PASS kernel_faults: %d kinds\n", kFaults);
}
