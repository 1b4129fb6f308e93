// Four devices read and write each other's memory: vectors and single bytes, and atomics on a
// peer's counter from all of them.
//
// run: --devices 4
// finds: api_error
#include "arrays.h"

namespace {

constexpr int kDevices = 4, kCount = 256;

struct Peers {
  int4* data[kDevices];
  unsigned long long* counter;
};

// Thread i of device d copies element i of every device into its own slot of the next device.
__global__ void Exchange(Peers peers, int device, int4* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int4 sum = make_int4(0, 0, 0, 0);
  for (int peer = 0; peer < kDevices; ++peer) {
    const int4 value = peers.data[peer][i];
    sum.x += value.x, sum.y += value.y, sum.z += value.z, sum.w += value.w;
  }
  out[device * kCount + i] = sum;
  atomicAdd_system(peers.counter, static_cast<unsigned long long>(device) << 32 | 1);
  if (threadIdx.x == 0)
    atomicMax_system(peers.counter + 1,
                     static_cast<unsigned long long>(device * 1000 + blockIdx.x));
}

__global__ void Bytes(unsigned char* peer, int offset) {
  peer[offset + threadIdx.x * 3] = static_cast<unsigned char>(threadIdx.x);
  reinterpret_cast<unsigned short*>(peer + 1024)[threadIdx.x + offset] =
      static_cast<unsigned short>(threadIdx.x * 257);
}

}  // namespace

int main() {
  RequireDevices(kDevices);
  Peers peers;
  std::vector<int> values(kCount * 4);
  for (int device = 0; device < kDevices; ++device) {
    for (int i = 0; i < kCount * 4; ++i) values[i] = i * 10 + device;
    peers.data[device] = ZeroedOn<int4>(device, kCount);
    Upload(reinterpret_cast<int*>(peers.data[device]), values.data(), values.size());
    for (int peer = 0; peer < kDevices; ++peer) {
      if (peer != device) EnablePeer(device, peer);
    }
  }
  CUDA_EXPECT(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(0, 0));
  cudaGetLastError();
  peers.counter = ZeroedOn<unsigned long long>(2, 2);
  int4* out[kDevices];
  for (int device = 0; device < kDevices; ++device)
    out[device] = ZeroedOn<int4>(device, kDevices * kCount);
  for (int device = 0; device < kDevices; ++device) {
    CUDA_CHECK(cudaSetDevice(device));
    Exchange<<<4, kCount / 4>>>(peers, device, out[(device + 1) % kDevices]);
    CUDA_CHECK_LAUNCH();
  }
  for (int device = 0; device < kDevices; ++device) {
    CUDA_CHECK(cudaSetDevice(device));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  for (int device = 0; device < kDevices; ++device) {
    const int4* mine = out[(device + 1) % kDevices] + device * kCount;
    std::vector<int> expected;
    for (int i = 0; i < kCount * 4; ++i) expected.push_back(i * 10 * kDevices + 0 + 1 + 2 + 3);
    REQUIRE_SAME(ToHost(reinterpret_cast<const int*>(mine), kCount * 4), expected);
  }
  const unsigned long long counter = Fetch(peers.counter);
  REQUIRE(counter == ((0ull + 1 + 2 + 3) * kCount << 32 | kDevices * kCount),
          "the counter is 0x%llx", counter);
  REQUIRE(Fetch(peers.counter + 1) == 3003, "the maximum is %llu", Fetch(peers.counter + 1));

  CUDA_CHECK(cudaSetDevice(3));
  unsigned char* bytes = ZeroedOn<unsigned char>(0, 2048);
  CUDA_CHECK(cudaSetDevice(3));
  Bytes<<<1, 64>>>(bytes, 5);
  std::vector<unsigned char> expected(2048, 0);
  for (int i = 0; i < 64; ++i) {
    expected[5 + i * 3] = static_cast<unsigned char>(i);
    expected[1024 + (i + 5) * 2] = expected[1024 + (i + 5) * 2 + 1] = static_cast<unsigned char>(i);
  }
  REQUIRE_SAME(ToHost(bytes, 2048), expected);
  std::puts("PASS peer_memory");
}
