// nvcc: -lcuda
// finds: api_error
// Copies and sets of two dimensions: every pair of pageable, pinned and device memory, offsets,
// pitches wider than the rows, and what must be refused.
#include <cuda.h>

#include <cstring>
#include <vector>

#include "check.h"

namespace {

constexpr size_t kWidth = 37, kHeight = 11;

unsigned char Value(size_t x, size_t y) { return static_cast<unsigned char>(x * 3 + y * 41 + 1); }

struct Buffer {
  unsigned char* data;
  size_t pitch;
};

// A source holds the pattern; all else is 0xEE.
void Fill(const Buffer& buffer, bool pattern) {
  std::vector<unsigned char> image(buffer.pitch * kHeight, 0xEE);
  for (size_t y = 0; pattern && y < kHeight; ++y)
    for (size_t x = 0; x < kWidth; ++x) image[y * buffer.pitch + x] = Value(x, y);
  CUDA_CHECK(cudaMemcpy(buffer.data, image.data(), image.size(), cudaMemcpyDefault));
}

void CheckRows(const Buffer& buffer, const char* what) {
  std::vector<unsigned char> image(buffer.pitch * kHeight);
  CUDA_CHECK(cudaMemcpy(image.data(), buffer.data, image.size(), cudaMemcpyDefault));
  for (size_t y = 0; y < kHeight; ++y) {
    for (size_t x = 0; x < buffer.pitch; ++x) {
      const unsigned char expected = x < kWidth ? Value(x, y) : 0xEE;
      REQUIRE(image[y * buffer.pitch + x] == expected, "%s: (%zu, %zu) is %d, expected %d", what, x,
              y, image[y * buffer.pitch + x], expected);
    }
  }
}

__global__ void CheckOnDevice(const unsigned char* data, size_t pitch, int* wrong) {
  const size_t x = threadIdx.x, y = threadIdx.y;
  if (data[y * pitch + x] != static_cast<unsigned char>(x * 3 + y * 41 + 1)) atomicAdd(wrong, 1);
}

}  // namespace

int main() {
  CUDA_CHECK(cudaSetDevice(0));
  Buffer device{}, other{}, pinned{nullptr, 53}, pinned2{nullptr, 64}, own{nullptr, 41},
      own2{nullptr, 40};
  CUDA_CHECK(cudaMallocPitch(&device.data, &device.pitch, kWidth, kHeight));
  REQUIRE(device.pitch >= kWidth && device.pitch % 256 == 0, "pitch %zu", device.pitch);
  CUDA_CHECK(cudaMallocPitch(&other.data, &other.pitch, kWidth + 600, kHeight));
  CUDA_CHECK(cudaMallocHost(&pinned.data, pinned.pitch * kHeight));
  CUDA_CHECK(cudaHostAlloc(&pinned2.data, pinned2.pitch * kHeight, cudaHostAllocMapped));
  std::vector<unsigned char> memory(own.pitch * kHeight), memory2(own2.pitch * kHeight);
  own.data = memory.data();
  own2.data = memory2.data();
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));

  struct Case {
    const char* name;
    Buffer src, dst;
    cudaMemcpyKind kind;
  } cases[] = {
      {"own to device", own, device, cudaMemcpyHostToDevice},
      {"pinned to device", pinned, device, cudaMemcpyHostToDevice},
      {"device to own", device, own, cudaMemcpyDeviceToHost},
      {"device to pinned", device, pinned, cudaMemcpyDeviceToHost},
      {"device to device", device, other, cudaMemcpyDeviceToDevice},
      {"own to own", own, own2, cudaMemcpyHostToHost},
      {"pinned to own", pinned, own, cudaMemcpyHostToHost},
      {"own to pinned", own, pinned, cudaMemcpyHostToHost},
      {"pinned to pinned", pinned, pinned2, cudaMemcpyHostToHost},
  };
  for (const Case& c : cases) {
    for (cudaMemcpyKind kind : {c.kind, cudaMemcpyDefault}) {
      for (bool async : {false, true}) {
        Fill(c.src, true);
        Fill(c.dst, false);
        if (async) {
          CUDA_CHECK(cudaMemcpy2DAsync(c.dst.data, c.dst.pitch, c.src.data, c.src.pitch, kWidth,
                                       kHeight, kind, stream));
          CUDA_CHECK(cudaStreamSynchronize(stream));
        } else {
          CUDA_CHECK(cudaMemcpy2D(c.dst.data, c.dst.pitch, c.src.data, c.src.pitch, kWidth, kHeight,
                                  kind));
        }
        CheckRows(c.dst, c.name);
      }
    }
  }
  // What a kernel sees.
  int* wrong = ZeroedOn<int>(0);
  Fill(own, true);
  CUDA_CHECK(cudaMemcpy2D(device.data, device.pitch, own.data, own.pitch, kWidth, kHeight,
                          cudaMemcpyHostToDevice));
  CheckOnDevice<<<1, dim3(kWidth, kHeight)>>>(device.data, device.pitch, wrong);
  CUDA_CHECK_LAUNCH();
  REQUIRE(Fetch(wrong) == 0, "%d wrong bytes on the device", Fetch(wrong));

  // The driver's description, with offsets: rows 2..5, columns 5..14.
  Fill(other, false);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = own.data;
  copy.srcPitch = own.pitch;
  copy.srcXInBytes = 5;
  copy.srcY = 2;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = reinterpret_cast<CUdeviceptr>(other.data);
  copy.dstPitch = other.pitch;
  copy.dstXInBytes = 7;
  copy.dstY = 1;
  copy.WidthInBytes = 10;
  copy.Height = 4;
  REQUIRE(cuMemcpy2D(&copy) == CUDA_SUCCESS, "cuMemcpy2D");
  REQUIRE(cuMemcpy2DUnaligned(&copy) == CUDA_SUCCESS, "cuMemcpy2DUnaligned");
  std::vector<unsigned char> image(other.pitch * kHeight);
  CUDA_CHECK(cudaMemcpy(image.data(), other.data, image.size(), cudaMemcpyDeviceToHost));
  for (size_t y = 0; y < kHeight; ++y) {
    for (size_t x = 0; x < other.pitch; ++x) {
      const bool inside = y >= 1 && y < 5 && x >= 7 && x < 17;
      const int expected = inside ? Value(x - 2, y + 1) : 0xEE;
      REQUIRE(image[y * other.pitch + x] == expected, "offset copy at (%zu, %zu)", x, y);
    }
  }
  copy.dstPitch = 9;
  REQUIRE(cuMemcpy2D(&copy) == CUDA_ERROR_INVALID_VALUE, "a pitch below the width");

  // Sets.
  Fill(device, false);
  CUDA_CHECK(cudaMemset2D(device.data, device.pitch, 0x5A, 20, 3));
  REQUIRE(cuMemsetD2D16(reinterpret_cast<CUdeviceptr>(device.data + 4 * device.pitch), device.pitch,
                        0x1234, 5, 2) == CUDA_SUCCESS,
          "cuMemsetD2D16");
  REQUIRE(cuMemsetD2D32Async(reinterpret_cast<CUdeviceptr>(device.data + 6 * device.pitch),
                             device.pitch, 0xA1B2C3D4u, 3, 2, nullptr) == CUDA_SUCCESS,
          "cuMemsetD2D32Async");
  image.assign(device.pitch * kHeight, 0);
  CUDA_CHECK(cudaMemcpy(image.data(), device.data, image.size(), cudaMemcpyDeviceToHost));
  for (size_t y = 0; y < kHeight; ++y) {
    for (size_t x = 0; x < device.pitch; ++x) {
      int expected = 0xEE;
      if (y < 3 && x < 20) expected = 0x5A;
      if ((y == 4 || y == 5) && x < 10) expected = x % 2 == 0 ? 0x34 : 0x12;
      if ((y == 6 || y == 7) && x < 12) expected = 0xA1B2C3D4u >> (x % 4 * 8) & 0xFF;
      REQUIRE(image[y * device.pitch + x] == expected, "set at (%zu, %zu): %d", x, y,
              image[y * device.pitch + x]);
    }
  }

  // Refused.
  CUDA_EXPECT(cudaErrorInvalidPitchValue,
              cudaMemcpy2D(device.data, device.pitch, own.data, kWidth - 1, kWidth, kHeight,
                           cudaMemcpyHostToDevice));
  CUDA_EXPECT(cudaErrorInvalidMemcpyDirection,
              cudaMemcpy2D(device.data, device.pitch, own.data, own.pitch, kWidth, kHeight,
                           static_cast<cudaMemcpyKind>(9)));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemcpy2D(device.data, device.pitch, own.data, own.pitch,
                                                  kWidth, kHeight, cudaMemcpyDeviceToDevice));
  CUDA_EXPECT(cudaErrorInvalidValue,
              cudaMemcpy2D(device.data, device.pitch, other.data, other.pitch, kWidth, kHeight + 1,
                           cudaMemcpyDeviceToDevice));
  CUDA_CHECK(cudaMemcpy2D(device.data, device.pitch, own.data, own.pitch, kWidth, 0,
                          cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy2D(device.data, device.pitch, own.data, own.pitch, 0, kHeight,
                          cudaMemcpyHostToDevice));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaGetLastError());
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  std::puts("ok");
}
