// cudaHostRegister of memory that several mappings share: two of a file in one process, and one in
// each of two processes. Kernels and host threads of all see the same bytes.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cuda/atomic>

#include "check.h"
#include "two_processes.h"

namespace {

constexpr int kBytes = 3 * 4096, kCount = kBytes / sizeof(int);

__global__ void Add(int* data, int value) {
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) data[i] += value;
}

// Takes turns with the other one.
__global__ void Count(int* word, int rank, int rounds) {
  cuda::atomic_ref<int, cuda::thread_scope_system> turn(*word);
  for (int round = 0; round < rounds; ++round) {
    while (turn.load(cuda::memory_order_acquire) != 2 * round + rank) {
    }
    turn.store(2 * round + rank + 1, cuda::memory_order_release);
  }
}

void TwoMappings() {
  char path[] = "/dev/shm/register-XXXXXX";
  const int fd = mkstemp(path);
  REQUIRE(fd >= 0 && unlink(path) == 0 && ftruncate(fd, kBytes) == 0, "no file");
  const auto map = [&] {
    void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(at != MAP_FAILED, "mmap");
    return static_cast<int*>(at);
  };
  int *one = map(), *two = map();
  for (int i = 0; i < kCount; ++i) one[i] = i;
  CUDA_CHECK(cudaHostRegister(one, kBytes, cudaHostRegisterMapped));
  Add<<<1, 128>>>(one, 1000);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaHostRegister(two, kBytes, cudaHostRegisterMapped | cudaHostRegisterPortable));
  Add<<<1, 128>>>(two, 10000);
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < kCount; ++i) {
    REQUIRE(one[i] == i + 11000 && two[i] == i + 11000, "[%d]: %d, %d", i, one[i], two[i]);
  }
  two[5] = 1;
  REQUIRE(one[5] == 1, "a store of the host: %d", one[5]);
  CUDA_CHECK(cudaHostUnregister(one));
  Add<<<1, 128>>>(two, 1);
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(one[5] == 2 && two[5] == 2, "one has ended: %d, %d", one[5], two[5]);
  CUDA_CHECK(cudaHostUnregister(two));
  one[6] = 4;
  REQUIRE(two[6] == 4, "both have ended: %d", two[6]);
  close(fd);
}

}  // namespace

int main() {
  void* shared = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED, "mmap");
  return RunTwoProcesses([&](int rank, Partner partner) {
    CUDA_CHECK(cudaSetDevice(rank));
    int* word = static_cast<int*>(shared) + 100;
    CUDA_CHECK(cudaHostRegister(shared, kBytes, cudaHostRegisterMapped));
    partner.Barrier();
    int* on_device = nullptr;
    CUDA_CHECK(cudaHostGetDevicePointer(&on_device, word, 0));
    Count<<<1, 1>>>(on_device, rank, 20);
    CUDA_CHECK(cudaDeviceSynchronize());
    partner.Barrier();
    REQUIRE(*static_cast<volatile int*>(word) == 40, "rank %d sees %d", rank, *word);
    partner.Barrier();
    CUDA_CHECK(cudaHostUnregister(shared));
    if (rank == 0) TwoMappings();
  });
}
