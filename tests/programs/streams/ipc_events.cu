// Events between processes: one records, the other's stream waits for it.
//
// finds: api_error
#include "two_processes.h"

namespace {

__global__ void Slow(int* place, int value) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now < start + 100000);
  *place = value;
}
__global__ void Copy(const int* from, int* to) { *to = *from; }

void Body(int rank, Partner partner) {
  CUDA_CHECK(cudaSetDevice(rank));
  int* mine = ZeroedOn<int>(rank, 2);
  cudaEvent_t event, theirs;
  CUDA_EXPECT(cudaErrorInvalidValue, cudaEventCreateWithFlags(&event, cudaEventInterprocess));
  cudaGetLastError();
  CUDA_CHECK(
      cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
  cudaIpcEventHandle_t handle;
  CUDA_CHECK(cudaIpcGetEventHandle(&handle, event));
  handle = partner.Exchange(handle);
  CUDA_CHECK(cudaIpcOpenEventHandle(&theirs, handle));
  int* remote = partner.ExchangeMemory(mine);
  if (rank == 0) {
    Slow<<<1, 1>>>(mine, 42);
    CUDA_CHECK(cudaEventRecord(event));
    partner.Barrier();  // recorded, but far from complete
    partner.Barrier();
  } else {
    partner.Barrier();
    CUDA_EXPECT(cudaErrorNotReady, cudaEventQuery(theirs));
    CUDA_CHECK(cudaStreamWaitEvent(nullptr, theirs, 0));
    Copy<<<1, 1>>>(remote, mine + 1);
    CUDA_CHECK_LAUNCH();
    REQUIRE(Fetch(mine + 1) == 42, "got %d", Fetch(mine + 1));
    CUDA_CHECK(cudaEventSynchronize(theirs));
    partner.Barrier();
  }
  CUDA_CHECK(cudaEventDestroy(theirs));
  CUDA_CHECK(cudaIpcCloseMemHandle(remote));
  partner.Barrier();
}

}  // namespace

int main() {
  const int code = RunTwoProcesses(Body);
  REQUIRE(code == 0, "the other process exited with %d", code);
  cudaEvent_t plain;
  CUDA_CHECK(cudaEventCreate(&plain));
  cudaIpcEventHandle_t handle;
  CUDA_EXPECT(cudaErrorInvalidValue, cudaIpcGetEventHandle(&handle, plain));
  std::printf("PASS ipc_events\n");
  return 0;
}
