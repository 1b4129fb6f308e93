// Batches of copies and prefetches, and copies between devices, in stream order.
//
// finds: api_error
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

  // Boxes: 8 x 4 x 2 out of rows of 16 and planes of 5 into packed ones, and rows of a plane.
  cudaMemcpy3DBatchOp boxes[2]{};
  for (cudaMemcpy3DBatchOp& box : boxes) {
    box.src.type = box.dst.type = cudaMemcpyOperandTypePointer;
    box.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  }
  boxes[0].src.op.ptr = {host.data(), 16, 5, {}};
  boxes[0].dst.op.ptr = {first, 0, 0, {}};
  boxes[0].extent = make_cudaExtent(8, 4, 2);
  boxes[1].src.op.ptr = {pinned, 100, 0, {}};
  boxes[1].dst.op.ptr = {first + 1024, 50, 0, {}};
  boxes[1].extent = make_cudaExtent(50, 10, 1);
  CUDA_CHECK(cudaMemsetAsync(first, 0, kBytes, stream));
  CUDA_CHECK(cudaMemcpy3DBatchAsync(2, boxes, 0, stream));
  CUDA_CHECK(cudaMemcpyAsync(back.data(), first, kBytes, cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  for (size_t i = 0; i < kBytes; ++i) {
    char expected = 0;
    if (i < 64) expected = host[i / 32 * 80 + i / 8 % 4 * 16 + i % 8];
    if (i >= 1024 && i < 1524) expected = host[(i - 1024) / 50 * 100 + (i - 1024) % 50];
    REQUIRE(back[i] == expected, "box byte %zu is %d, expected %d", i, back[i], expected);
  }

  // Prefetches of managed memory.
  void* managed[2];
  size_t managed_sizes[2] = {kBytes, 100};
  for (int i = 0; i < 2; ++i) {
    CUDA_CHECK(cudaMallocManaged(&managed[i], managed_sizes[i]));
    memset(managed[i], i + 1, managed_sizes[i]);
  }
  cudaMemLocation places[2] = {{cudaMemLocationTypeDevice, 1}, {cudaMemLocationTypeHost, 0}};
  size_t from[2] = {0, 1};
  CUDA_CHECK(cudaMemPrefetchBatchAsync(managed, managed_sizes, 2, places, from, 2, 0, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  int where[2];
  for (int i = 0; i < 2; ++i) {
    CUDA_CHECK(cudaMemRangeGetAttribute(&where[i], 4, cudaMemRangeAttributeLastPrefetchLocation,
                                        managed[i], managed_sizes[i]));
  }
  REQUIRE(where[0] == 1 && where[1] == cudaCpuDeviceId, "prefetched to %d and %d", where[0],
          where[1]);
  REQUIRE(static_cast<char*>(managed[0])[77] == 1, "prefetching keeps contents");
  CUDA_CHECK(cudaMemDiscardBatchAsync(managed, managed_sizes, 2, 0, stream));

  CUDA_EXPECT(cudaErrorInvalidValue,
              cudaMemcpyBatchAsync(dsts, srcs, sizes, 3, &attributes, &index, 1, nullptr));
  CUDA_EXPECT(cudaErrorInvalidValue,
              cudaMemcpyBatchAsync(dsts, srcs, sizes, 0, &attributes, &index, 1, stream));
  std::puts("ok");
}
