// Managed memory: host and every device use it at one address; prefetching,
// advice and attributes.
//
// finds: api_error
#include <cstring>

#include "check.h"

namespace {

struct Node {
  Node* next;
  int value;
};

__global__ void Walk(Node* node, int* total) {
  for (; node != nullptr; node = node->next) {
    *total += node->value;
    node->value = -node->value;
  }
}

__global__ void Count(int* counter) { atomicAdd_system(counter, 1); }

int Attribute(cudaMemRangeAttribute attribute, const void* data, size_t size) {
  int value = 12345;
  CUDA_CHECK(cudaMemRangeGetAttribute(&value, sizeof value, attribute, data, size));
  return value;
}

}  // namespace

int main() {
  RequireDevices(2);
  constexpr int kNodes = 100;
  Node* nodes = nullptr;
  int* total = nullptr;
  CUDA_CHECK(cudaMallocManaged(&nodes, kNodes * sizeof(Node)));
  CUDA_CHECK(cudaMallocManaged(&total, sizeof(int)));
  // A list built by the host, walked by two devices and by the host again.
  *total = 0;
  for (int i = 0; i < kNodes; ++i) nodes[i] = {i + 1 < kNodes ? &nodes[i + 1] : nullptr, i};
  for (int device = 0; device < 2; ++device) {
    CUDA_CHECK(cudaSetDevice(device));
    Walk<<<1, 1>>>(nodes, total);
    CUDA_CHECK(cudaDeviceSynchronize());
    const int expected = device == 0 ? kNodes * (kNodes - 1) / 2 : 0;
    REQUIRE(*total == expected, "total %d, expected %d", *total, expected);
  }
  for (const Node* node = nodes; node != nullptr; node = node->next) {
    REQUIRE(node->value == node - nodes, "node %ld is %d", long(node - nodes), node->value);
  }

  // It moves by prefetching; contents and access stay.
  CUDA_CHECK(cudaSetDevice(0));
  const cudaMemLocation gpu{cudaMemLocationTypeDevice, 1}, cpu{cudaMemLocationTypeHost, 0};
  CUDA_CHECK(cudaMemPrefetchAsync(nodes, kNodes * sizeof(Node), gpu, 0, nullptr));
  CUDA_CHECK(cudaMemPrefetchAsync(total, sizeof(int), gpu, 0, nullptr));
  *total = 0;
  Walk<<<1, 1>>>(nodes, total);
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(*total == kNodes * (kNodes - 1) / 2, "total %d after a prefetch", *total);
  REQUIRE(Attribute(cudaMemRangeAttributeLastPrefetchLocation, nodes, sizeof(Node)) == 1, "device");
  CUDA_CHECK(cudaMemPrefetchAsync(nodes, kNodes * sizeof(Node), cpu, 0, nullptr));
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(
      Attribute(cudaMemRangeAttributeLastPrefetchLocation, nodes, sizeof(Node)) == cudaCpuDeviceId,
      "host");
  REQUIRE(nodes[5].value == -5, "%d", nodes[5].value);

  // Advice, of parts and of the whole.
  char* data = nullptr;
  constexpr size_t kBytes = 4 * 65536;
  CUDA_CHECK(cudaMallocManaged(&data, kBytes, cudaMemAttachGlobal));
  REQUIRE(Attribute(cudaMemRangeAttributeReadMostly, data, kBytes) == 0, "read mostly");
  REQUIRE(Attribute(cudaMemRangeAttributePreferredLocation, data, kBytes) == cudaInvalidDeviceId,
          "preferred location");
  CUDA_CHECK(cudaMemAdvise(data, kBytes / 2, cudaMemAdviseSetReadMostly, cpu));
  REQUIRE(Attribute(cudaMemRangeAttributeReadMostly, data, kBytes / 2) == 1, "read mostly");
  REQUIRE(Attribute(cudaMemRangeAttributeReadMostly, data, kBytes) == 0, "read mostly in part");
  CUDA_CHECK(cudaMemAdvise(data, kBytes, cudaMemAdviseSetPreferredLocation, gpu));
  REQUIRE(Attribute(cudaMemRangeAttributePreferredLocation, data, kBytes) == 1, "preferred");
  CUDA_CHECK(cudaMemAdvise(data, kBytes, cudaMemAdviseUnsetPreferredLocation, gpu));
  CUDA_CHECK(cudaMemAdvise(data, kBytes, cudaMemAdviseSetPreferredLocation, cpu));
  REQUIRE(Attribute(cudaMemRangeAttributePreferredLocation, data, kBytes) == cudaCpuDeviceId,
          "preferred");
  CUDA_CHECK(cudaMemAdvise(data, kBytes, cudaMemAdviseSetAccessedBy, gpu));
  CUDA_CHECK(cudaMemAdvise(data, kBytes, cudaMemAdviseSetAccessedBy,
                           cudaMemLocation{cudaMemLocationTypeDevice, 0}));
  int devices[4];
  CUDA_CHECK(cudaMemRangeGetAttribute(devices, sizeof devices, cudaMemRangeAttributeAccessedBy,
                                      data, kBytes));
  REQUIRE(devices[0] == 0 && devices[1] == 1 && devices[2] == cudaInvalidDeviceId,
          "accessed by %d %d %d", devices[0], devices[1], devices[2]);

  // What it is.
  cudaPointerAttributes attributes;
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, data + 100));
  REQUIRE(attributes.type == cudaMemoryTypeManaged && attributes.hostPointer == data + 100 &&
              attributes.devicePointer == data + 100,
          "type %d", attributes.type);

  // Copies and sets; a stream of its own.
  CUDA_CHECK(cudaMemset(data, 0x3C, kBytes));
  CUDA_CHECK(cudaDeviceSynchronize());
  for (size_t i = 0; i < kBytes; i += 1000) REQUIRE(data[i] == 0x3C, "set");
  char* device = ZeroedOn<char>(1, kBytes);
  CUDA_CHECK(cudaMemcpy(data, device, kBytes, cudaMemcpyDefault));
  REQUIRE(data[77] == 0, "copy");
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaStreamAttachMemAsync(stream, data, 0, cudaMemAttachSingle));
  CUDA_CHECK(cudaStreamSynchronize(stream));

  // Host and device change one word at the same time, atomically.
  CUDA_CHECK(cudaSetDevice(0));
  *total = 0;
  Count<<<4, 64>>>(total);
  for (int i = 0; i < 100; ++i) __atomic_fetch_add(total, 1, __ATOMIC_RELAXED);
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(*total == 356, "%d of 356", *total);

  // Refused.
  char own[64];
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMallocManaged(&data, 64, 0));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMallocManaged(&data, 0));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemPrefetchAsync(own, 64, gpu, 0, nullptr));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemPrefetchAsync(total, 1 << 20, gpu, 0, nullptr));
  CUDA_EXPECT(
      cudaErrorInvalidDevice,
      cudaMemPrefetchAsync(total, 4, cudaMemLocation{cudaMemLocationTypeDevice, 99}, 0, nullptr));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFreeHost(total));
  CUDA_CHECK(cudaFree(total));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFree(total));
  CUDA_CHECK(cudaFree(nodes));
  std::puts("ok");
}
