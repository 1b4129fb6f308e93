// Batches of copies and copies between devices, in stream order.
#include <cstring>
#include <vector>

#include "check.h"

int main() {
  RequireDevices(2);
  constexpr size_t kBytes = 4096;
  std::vector<char> host(kBytes), back(kBytes);
  for (size_t i = 0; i < kBytes; ++i) host[i] = static_cast<char>(i * 5);
  char *second = ZeroedOn<char>(1, kBytes), *first = ZeroedOn<char>(0, kBytes), *pinned = nullptr;
  CUDA_CHECK(cudaMallocHost(&pinned, kBytes));
  memcpy(pinned, host.data(), kBytes);
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));

  // Pinned and ordinary memory to one device, in one batch.
  void* dsts[3] = {first, first + 1000, first + 3000};
  const void* srcs[3] = {pinned, host.data() + 1000, pinned + 3000};
  const size_t sizes[3] = {1000, 2000, kBytes - 3000};
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t index = 0;
  CUDA_CHECK(cudaMemcpyBatchAsync(dsts, srcs, sizes, 3, &attributes, &index, 1, stream));
  // On to the other device, and back from there.
  CUDA_CHECK(cudaMemcpyPeerAsync(second, 1, first, 0, kBytes, stream));
  CUDA_CHECK(cudaMemsetAsync(first, 0, kBytes, stream));
  CUDA_CHECK(cudaMemcpyAsync(back.data(), second, kBytes, cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  REQUIRE(back == host, "what came back is not what was sent");
  CUDA_CHECK(cudaMemcpyPeer(first, 0, second, 1, kBytes));
  CUDA_CHECK(cudaMemcpy(back.data(), first, kBytes, cudaMemcpyDefault));
  REQUIRE(back == host, "the synchronous copy differs");

  CUDA_EXPECT(cudaErrorInvalidValue,
              cudaMemcpyBatchAsync(dsts, srcs, sizes, 3, &attributes, &index, 1, nullptr));
  CUDA_EXPECT(cudaErrorInvalidValue,
              cudaMemcpyBatchAsync(dsts, srcs, sizes, 0, &attributes, &index, 1, stream));
  std::puts("ok");
}
