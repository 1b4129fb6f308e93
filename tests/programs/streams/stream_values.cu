// Streams that write values to memory and wait for values there: all comparisons, both widths,
// batches; woken by kernels, other streams, other devices and the host.
//
// finds: api_error
#include <chrono>
#include <thread>

#include "driver.h"

namespace {

__global__ void Store(unsigned* place, unsigned value) {
  *reinterpret_cast<volatile unsigned*>(place) = value;
}
__global__ void Copy(const unsigned* from, unsigned* to) { *to = *from; }

CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace

int main() {
  RequireDevices(2);
  const auto write32 = DRIVER(cuStreamWriteValue32);
  const auto wait32 = DRIVER(cuStreamWaitValue32);
  const auto write64 = DRIVER(cuStreamWriteValue64);
  const auto wait64 = DRIVER(cuStreamWaitValue64);
  const auto batch = DRIVER(cuStreamBatchMemOp);
  unsigned* flags = ZeroedOn<unsigned>(0, 64);
  cudaStream_t a, b;
  CUDA_CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));

  // One stream waits for another's write, and for what stands before the write.
  DRIVER_CHECK(wait32(b, Address(flags), 3, CU_STREAM_WAIT_VALUE_EQ));
  Copy<<<1, 1, 0, b>>>(flags + 1, flags + 2);
  CUDA_EXPECT(cudaErrorNotReady, cudaStreamQuery(b));
  Store<<<1, 1, 0, a>>>(flags + 1, 42);
  DRIVER_CHECK(write32(a, Address(flags), 3, 0));
  CUDA_CHECK(cudaStreamSynchronize(b));
  REQUIRE(Fetch(flags + 2) == 42, "got %u", Fetch(flags + 2));

  // A kernel's store wakes it; greater-or-equal is cyclic.
  DRIVER_CHECK(wait32(b, Address(flags + 4), 0xfffffff0u, CU_STREAM_WAIT_VALUE_GEQ));
  CUDA_CHECK(cudaStreamSynchronize(b));  // 0 is 16 beyond 0xfffffff0
  DRIVER_CHECK(wait32(b, Address(flags + 4), 10, CU_STREAM_WAIT_VALUE_GEQ));
  Store<<<1, 1, 0, a>>>(flags + 4, 9);
  CUDA_CHECK(cudaStreamSynchronize(a));
  CUDA_EXPECT(cudaErrorNotReady, cudaStreamQuery(b));
  Store<<<1, 1, 0, a>>>(flags + 4, 11);
  CUDA_CHECK(cudaStreamSynchronize(b));

  // Bits: AND waits for any of them, NOR for any that is in neither.
  DRIVER_CHECK(wait32(b, Address(flags + 5), 0x6, CU_STREAM_WAIT_VALUE_AND));
  DRIVER_CHECK(write32(a, Address(flags + 5), 0x08080808, 0));
  CUDA_CHECK(cudaStreamSynchronize(a));
  CUDA_EXPECT(cudaErrorNotReady, cudaStreamQuery(b));
  DRIVER_CHECK(write32(a, Address(flags + 5), 0x2, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
  CUDA_CHECK(cudaStreamSynchronize(b));
  Store<<<1, 1, 0, a>>>(flags + 6, 0x0fffffffu);
  CUDA_CHECK(cudaStreamSynchronize(a));
  DRIVER_CHECK(wait32(b, Address(flags + 6), 0xf0000000u, CU_STREAM_WAIT_VALUE_NOR));
  CUDA_EXPECT(cudaErrorNotReady, cudaStreamQuery(b));
  DRIVER_CHECK(write32(a, Address(flags + 6), 0x0ffffffeu, 0));
  CUDA_CHECK(cudaStreamSynchronize(b));

  // 64 bits, and a batch that ends by setting what the host polls.
  unsigned* host;
  CUDA_CHECK(cudaMallocHost(&host, 64));
  host[0] = host[1] = 0;
  CUstreamBatchMemOpParams steps[4] = {};
  steps[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
  steps[0].waitValue.address = Address(flags + 8);
  steps[0].waitValue.value64 = 1ull << 40;
  steps[0].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  steps[1].operation = CU_STREAM_MEM_OP_BARRIER;
  steps[2].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  steps[2].writeValue.address = Address(flags + 10);
  steps[2].writeValue.value64 = 0x123456789abcdefull;
  steps[3].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  steps[3].writeValue.address = Address(host);
  steps[3].writeValue.value = 77;
  DRIVER_CHECK(batch(b, 4, steps, 0));
  DRIVER_CHECK(write64(a, Address(flags + 8), (1ull << 40) + 5, 0));
  while (*reinterpret_cast<volatile unsigned*>(host) != 77) {
  }
  REQUIRE(Fetch(reinterpret_cast<unsigned long long*>(flags + 10)) == 0x123456789abcdefull,
          "value");

  // The host's own store to pinned memory, from another thread while this one waits.
  DRIVER_CHECK(wait32(b, Address(host + 1), 5, CU_STREAM_WAIT_VALUE_EQ));
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    *reinterpret_cast<volatile unsigned*>(host + 1) = 5;
  });
  CUDA_CHECK(cudaStreamSynchronize(b));
  writer.join();

  // Another device's write through the link.
  EnablePeer(1, 0);
  cudaStream_t far;
  CUDA_CHECK(cudaStreamCreateWithFlags(&far, cudaStreamNonBlocking));
  DRIVER_CHECK(wait64(b, Address(flags + 12), 9, CU_STREAM_WAIT_VALUE_EQ));
  DRIVER_CHECK(write64(far, Address(flags + 12), 9, 0));
  CUDA_CHECK(cudaStreamSynchronize(b));

  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, write32(a, Address(flags) + 2, 1, 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, wait32(a, Address(flags), 1, 0x80));
  std::printf("PASS stream_values\n");
  return 0;
}
