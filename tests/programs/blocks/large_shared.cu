// More than 48 KB of dynamic shared memory: refused without the attribute, usable up to the opt-in
// limit with it, refused beyond; static and dynamic memory beside each other; sizes in the
// attributes of the function.
//
// finds: api_error
#include "arrays.h"

namespace {

// Reverses `count` words through shared memory, far more of them than there are threads.
__global__ void Reverse(const unsigned* in, unsigned* out, int count) {
  extern __shared__ unsigned words[];
  __shared__ unsigned sum;
  if (threadIdx.x == 0) sum = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) words[i] = in[i];
  __syncthreads();
  unsigned mine = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    out[i] = words[count - 1 - i];
    mine += words[i];
  }
  atomicAdd(&sum, mine);
  __syncthreads();
  if (threadIdx.x == 0) out[count] = sum;
}

}  // namespace

int main() {
  int limit = 0, usual = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  CUDA_CHECK(cudaDeviceGetAttribute(&usual, cudaDevAttrMaxSharedMemoryPerBlock, 0));
  REQUIRE(usual == 48 * 1024, "%d bytes without opting in", usual);
  REQUIRE(limit == 227 * 1024, "%d bytes at most on sm_90", limit);

  cudaFuncAttributes attributes;
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, Reverse));
  // ptxas rounds `sum` up to where the dynamic part may start.
  REQUIRE(attributes.sharedSizeBytes >= 4 && attributes.sharedSizeBytes <= 1024,
          "%zu bytes of static shared memory", attributes.sharedSizeBytes);

  const int available = limit - static_cast<int>(attributes.sharedSizeBytes);
  const int count = available / 4;
  std::vector<unsigned> in, expected(count + 1, 0);
  Random random(17);
  for (int i = 0; i < count; ++i) in.push_back(random.Next());
  for (int i = 0; i < count; ++i) {
    expected[i] = in[count - 1 - i];
    expected[count] += in[i];
  }
  unsigned* source = ToDevice(in);
  unsigned* out = Unwritten<unsigned>(count + 1);
  Reverse<<<1, 256, count * 4>>>(source, out, count);
  CUDA_EXPECT(cudaErrorInvalidValue, cudaGetLastError());

  CUDA_CHECK(cudaFuncSetAttribute(Reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, available));
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, Reverse));
  REQUIRE(attributes.maxDynamicSharedSizeBytes == available, "the attribute says %d",
          attributes.maxDynamicSharedSizeBytes);
  Reverse<<<1, 256, count * 4>>>(source, out, count);
  REQUIRE_SAME(ToHost(out, count + 1), expected);

  Reverse<<<1, 256, limit + 1024>>>(source, out, count);
  CUDA_EXPECT(cudaErrorInvalidValue, cudaGetLastError());
  CUDA_EXPECT(
      cudaErrorInvalidValue,
      cudaFuncSetAttribute(Reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, limit + 4));
  cudaGetLastError();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("PASS large_shared: %d bytes\n", available);
}
