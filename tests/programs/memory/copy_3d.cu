// nvcc: -lcuda
// finds: api_error
// Copies and sets of three dimensions: boxes out of larger boxes, between host and devices, by the
// runtime's and the driver's descriptions, and to another device.
#include <cuda.h>

#include <cstring>
#include <vector>

#include "check.h"

namespace {

constexpr size_t kX = 19, kY = 7, kZ = 5;  // the box that is copied

unsigned char Value(size_t x, size_t y, size_t z) {
  return static_cast<unsigned char>(1 + x + y * 23 + z * 101);
}

struct Volume {
  cudaPitchedPtr at;
  size_t depth;
  size_t Bytes() const { return at.pitch * at.ysize * depth; }
};

void Fill(const Volume& volume, int value) {
  std::vector<unsigned char> image(volume.Bytes(), static_cast<unsigned char>(value));
  CUDA_CHECK(cudaMemcpy(volume.at.ptr, image.data(), image.size(), cudaMemcpyDefault));
}

// The pattern at (x, y, z), all else `background`.
void Check(const Volume& volume, cudaPos at, int background, const char* what) {
  std::vector<unsigned char> image(volume.Bytes());
  CUDA_CHECK(cudaMemcpy(image.data(), volume.at.ptr, image.size(), cudaMemcpyDefault));
  for (size_t z = 0; z < volume.depth; ++z) {
    for (size_t y = 0; y < volume.at.ysize; ++y) {
      for (size_t x = 0; x < volume.at.pitch; ++x) {
        const bool inside = x - at.x < kX && y - at.y < kY && z - at.z < kZ;
        const int expected = inside ? Value(x - at.x, y - at.y, z - at.z) : background;
        const int got = image[(z * volume.at.ysize + y) * volume.at.pitch + x];
        REQUIRE(got == expected, "%s: (%zu, %zu, %zu) is %d, expected %d", what, x, y, z, got,
                expected);
      }
    }
  }
}

}  // namespace

int main() {
  RequireDevices(2);
  Volume device{}, second{}, host{}, pinned{};
  CUDA_CHECK(cudaSetDevice(1));
  CUDA_CHECK(cudaMalloc3D(&second.at, make_cudaExtent(kX + 2, kY + 5, kZ + 1)));
  second.depth = kZ + 1;
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaMalloc3D(&device.at, make_cudaExtent(kX + 9, kY + 3, kZ + 2)));
  device.depth = kZ + 2;
  REQUIRE(device.at.xsize == kX + 9 && device.at.ysize == kY + 3 && device.at.pitch >= kX + 9,
          "pitch %zu", device.at.pitch);
  std::vector<unsigned char> own((kX + 1) * (kY + 2) * (kZ + 1));
  host = {make_cudaPitchedPtr(own.data(), kX + 1, kX + 1, kY + 2), kZ + 1};
  pinned = {make_cudaPitchedPtr(nullptr, kX + 4, kX + 4, kY), kZ};
  CUDA_CHECK(cudaMallocHost(&pinned.at.ptr, pinned.Bytes()));
  for (size_t z = 0; z < kZ; ++z)
    for (size_t y = 0; y < kY; ++y)
      for (size_t x = 0; x < kX; ++x)
        own[((z + 1) * (kY + 2) + y + 2) * (kX + 1) + x + 1] = Value(x, y, z);
  const cudaPos in_host = make_cudaPos(1, 2, 1), in_device = make_cudaPos(5, 1, 2);

  // Host to device, into the middle.
  cudaMemcpy3DParms copy{};
  copy.srcPtr = host.at;
  copy.srcPos = in_host;
  copy.dstPtr = device.at;
  copy.dstPos = in_device;
  copy.extent = make_cudaExtent(kX, kY, kZ);
  copy.kind = cudaMemcpyHostToDevice;
  Fill(device, 9);
  CUDA_CHECK(cudaMemcpy3D(&copy));
  Check(device, in_device, 9, "host to device");

  // Device to pinned memory, asynchronously.
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  Fill(pinned, 7);
  copy = {};
  copy.srcPtr = device.at;
  copy.srcPos = in_device;
  copy.dstPtr = pinned.at;
  copy.extent = make_cudaExtent(kX, kY, kZ);
  copy.kind = cudaMemcpyDefault;
  CUDA_CHECK(cudaMemcpy3DAsync(&copy, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  Check(pinned, {}, 7, "device to pinned");

  // Device to ordinary memory.
  std::fill(own.begin(), own.end(), 3);
  copy.dstPtr = host.at;
  copy.dstPos = in_host;
  copy.kind = cudaMemcpyDeviceToHost;
  CUDA_CHECK(cudaMemcpy3D(&copy));
  Check(host, in_host, 3, "device to host");

  // To another device.
  Fill(second, 0);
  cudaMemcpy3DPeerParms peer{};
  peer.srcPtr = device.at;
  peer.srcPos = in_device;
  peer.srcDevice = 0;
  peer.dstPtr = second.at;
  peer.dstPos = make_cudaPos(2, 5, 0);
  peer.dstDevice = 1;
  peer.extent = make_cudaExtent(kX, kY, kZ);
  CUDA_CHECK(cudaMemcpy3DPeerAsync(&peer, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  Check(second, peer.dstPos, 0, "to the other device");
  Fill(second, 1);
  CUDA_CHECK(cudaMemcpy3DPeer(&peer));
  CUDA_CHECK(cudaDeviceSynchronize());
  Check(second, peer.dstPos, 1, "to the other device, synchronously");

  // The driver's description of the same.
  Fill(second, 2);
  CUDA_MEMCPY3D driver{};
  driver.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  driver.srcDevice = reinterpret_cast<CUdeviceptr>(host.at.ptr);
  driver.srcPitch = host.at.pitch;
  driver.srcHeight = host.at.ysize;
  driver.srcXInBytes = in_host.x;
  driver.srcY = in_host.y;
  driver.srcZ = in_host.z;
  driver.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  driver.dstDevice = reinterpret_cast<CUdeviceptr>(second.at.ptr);
  driver.dstPitch = second.at.pitch;
  driver.dstHeight = second.at.ysize;
  driver.WidthInBytes = kX;
  driver.Height = kY;
  driver.Depth = kZ;
  REQUIRE(cuMemcpy3D(&driver) == CUDA_SUCCESS, "cuMemcpy3D");
  Check(second, {}, 2, "cuMemcpy3D");
  driver.dstHeight = kY - 1;
  REQUIRE(cuMemcpy3D(&driver) == CUDA_ERROR_INVALID_VALUE, "a plane below its rows");
  driver.dstHeight = second.at.ysize;
  driver.dstLOD = 1;
  REQUIRE(cuMemcpy3D(&driver) == CUDA_ERROR_INVALID_VALUE, "a level of detail");

  // Sets: the whole, then a box at its corner.
  CUDA_CHECK(cudaMemset3D(device.at, 0x44, make_cudaExtent(device.at.pitch, kY + 3, kZ + 2)));
  CUDA_CHECK(cudaMemset3DAsync(device.at, 0x55, make_cudaExtent(6, 3, 2), stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  std::vector<unsigned char> image(device.Bytes());
  CUDA_CHECK(cudaMemcpy(image.data(), device.at.ptr, image.size(), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < image.size(); ++i) {
    const size_t x = i % device.at.pitch, row = i / device.at.pitch;
    const bool inside = x < 6 && row % device.at.ysize < 3 && row / device.at.ysize < 2;
    REQUIRE(image[i] == (inside ? 0x55 : 0x44), "set at %zu", i);
  }

  // Refused.
  copy.extent.width = device.at.pitch;
  CUDA_EXPECT(cudaErrorInvalidPitchValue, cudaMemcpy3D(&copy));
  copy.extent.width = kX;
  copy.kind = static_cast<cudaMemcpyKind>(7);
  CUDA_EXPECT(cudaErrorInvalidMemcpyDirection, cudaMemcpy3D(&copy));
  copy.kind = cudaMemcpyDeviceToHost;
  copy.srcPtr.ptr = nullptr;
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemcpy3D(&copy));
  peer.dstDevice = 99;
  CUDA_EXPECT(cudaErrorInvalidDevice, cudaMemcpy3DPeer(&peer));
  CUDA_CHECK(cudaDeviceSynchronize());
  std::puts("ok");
}
