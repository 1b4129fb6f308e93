// An all-reduce through a multicast object of two devices: each reduces its half of the words by multimem loads and stores
// the sums to both members. Then everything is taken down.
// EXPECT 1 not_mapped: a plain store to the multicast address
// EXPECT 2 not_mapped: a plain reduction to the multicast address
// EXPECT 3 none: the object's handle is released once it is mapped, its memory is unbound later
// EXPECT 4 none: the members' handles are released once they are mapped and bound
#include <cuda.h>
#include "common.h"
constexpr int R = 2, N = 256, T = 64;
constexpr size_t BYTES = size_t{2} << 20;
#define DRIVER(call)                                             \
  do {                                                           \
    const CUresult result_ = (call);                             \
    if (result_ != CUDA_SUCCESS) {                               \
      std::printf("driver: %s gives %d\n", #call, (int)result_); \
      std::exit(3);                                              \
    }                                                            \
  } while (0)
__global__ void AllReduce(unsigned* everywhere, int rank) {
  for (int i = rank * N / R + threadIdx.x; i < (rank + 1) * N / R; i += T) {
    unsigned* at = everywhere + i;
    unsigned sum;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.u32 %0, [%1];"
                 : "=r"(sum)
                 : "l"(at)
                 : "memory");
#if BUG == 1
    *at = sum;
#elif BUG == 2
    asm volatile("multimem.st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(sum - 1) : "memory");
    asm volatile("red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(at) : "memory");
#else
    asm volatile("multimem.st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(sum) : "memory");
#endif
  }
}
static unsigned* Map(CUmemGenericAllocationHandle handle) {
  CUdeviceptr address;
  DRIVER(cuMemAddressReserve(&address, BYTES, 0, 0, 0));
  DRIVER(cuMemMap(address, BYTES, 0, handle, 0));
  CUmemAccessDesc access[R] = {};
  for (int r = 0; r < R; ++r) {
    access[r].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access[r].location.id = r;
    access[r].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  DRIVER(cuMemSetAccess(address, BYTES, access, R));
  return (unsigned*)address;
}
static void Unmap(unsigned* p) {
  DRIVER(cuMemUnmap((CUdeviceptr)p, BYTES));
  DRIVER(cuMemAddressFree((CUdeviceptr)p, BYTES));
}
int main() {
  peers(R);
  CUmulticastObjectProp all = {};
  all.numDevices = R;
  all.size = BYTES;
  CUmemGenericAllocationHandle object, memory[R];
  DRIVER(cuMulticastCreate(&object, &all));
  for (int r = 0; r < R; ++r) DRIVER(cuMulticastAddDevice(object, r));
  unsigned* on[R];
  for (int r = 0; r < R; ++r) {
    CUmemAllocationProp one = {};
    one.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    one.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    one.location.id = r;
    DRIVER(cuMemCreate(&memory[r], BYTES, &one, 0));
    on[r] = Map(memory[r]);
    DRIVER(cuMulticastBindMem(object, 0, memory[r], 0, BYTES, 0));
    std::vector<unsigned> words(N);
    for (int i = 0; i < N; ++i) words[i] = (r + 1) * 100 + i;
    put(r, on[r], words);
    if (BUG == 4) DRIVER(cuMemRelease(memory[r]));
  }
  unsigned* everywhere = Map(object);
  if (BUG == 3) DRIVER(cuMemRelease(object));
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    AllReduce<<<1, T>>>(everywhere, r);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    const auto got = get(r, on[r], N);
    for (int i = 0; i < N; ++i) wrong += got[i] != 300u + 2 * i;
  }
  for (int r = 0; r < R; ++r) DRIVER(cuMulticastUnbind(object, r, 0, BYTES));
  Unmap(everywhere);
  for (int r = 0; r < R; ++r) {
    Unmap(on[r]);
    if (BUG != 4) DRIVER(cuMemRelease(memory[r]));
  }
  if (BUG != 3) DRIVER(cuMemRelease(object));
  return finish(wrong, R);
}
