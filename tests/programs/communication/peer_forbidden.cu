// Without cudaDeviceEnablePeerAccess a kernel that touches another device's memory fails with
// cudaErrorIllegalAddress, the error stays, and the other device is not harmed.
//
// run: --devices 2
// finds: not_mapped
// faults: memory without access
#include "arrays.h"

namespace {

__global__ void Touch(int* p) { *p = 1; }

}  // namespace

int main() {
  RequireDevices(2);
  int* theirs = ZeroedOn<int>(1);
  int* mine = ZeroedOn<int>(0);
  CUDA_CHECK(cudaSetDevice(0));
  Touch<<<1, 1>>>(mine);
  CUDA_CHECK(cudaDeviceSynchronize());
  Touch<<<1, 1>>>(theirs);
  CUDA_EXPECT(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  CUDA_EXPECT(cudaErrorIllegalAddress, cudaMemset(mine, 0, 4));
  CUDA_CHECK(cudaSetDevice(1));
  Touch<<<1, 1>>>(theirs);
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(Fetch(theirs) == 1, "the other device's memory holds %d", Fetch(theirs));
  std::puts("PASS peer_forbidden");
}
