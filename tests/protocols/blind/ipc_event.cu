// Two processes: rank 0 fills a buffer on device 0, rank 1 reads it through an IPC handle from device 1; interprocess
// events "filled" (of rank 0) and "read" (of rank 1) order their streams, the processes meet in shared memory.
// EXPECT 1 race: rank 1 does not wait for "filled"; that the record was called does not say that the work is done
// EXPECT 2 race: "filled" is recorded before the kernel that fills
// EXPECT 3 race: rank 0 does not wait for "read" before it fills again
// EXPECT 4 none: rank 0 synchronises with its stream before the processes meet, so rank 1 needs no event
// EXPECT 5 race: "read" is recorded before the kernel that reads
// RANKS 2
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "common.h"

static const int N = 128, EPOCHS = 4;

struct Shared {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event[2];
  std::atomic<int> arrived;
};

static int meetings = 0;

static void meet(Shared* s) {
  s->arrived.fetch_add(1);
  ++meetings;
  while (s->arrived.load() < 2 * meetings) usleep(100);
}

static __global__ void fill(unsigned* buf, unsigned e) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  buf[i] = e * i;
}

static __global__ void add(const unsigned* buf, unsigned* total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  total[i] += buf[i];
}

int main() {
  const int rank = std::atoi(std::getenv("RANK"));
  meetings = 0;
  char name[64];
  std::snprintf(name, sizeof name, "/blind_ipc_event_%d", static_cast<int>(getppid()));
  int fd = shm_open(name, O_CREAT | O_RDWR, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Shared)) != 0) return 3;
  Shared* s = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));

  unsigned *total = alloc<unsigned>(rank, N), *buf = rank == 0 ? alloc<unsigned>(0, N) : nullptr;
  cudaEvent_t own, other;
  CK(cudaDeviceSynchronize());
  CK(cudaEventCreateWithFlags(&own, cudaEventDisableTiming | cudaEventInterprocess));
  CK(cudaIpcGetEventHandle(&s->event[rank], own));
  if (rank == 0) CK(cudaIpcGetMemHandle(&s->memory, buf));
  meet(s);
  CK(cudaIpcOpenEventHandle(&other, s->event[1 - rank]));
  void** at = reinterpret_cast<void**>(&buf);
  if (rank == 1) CK(cudaIpcOpenMemHandle(at, s->memory, cudaIpcMemLazyEnablePeerAccess));
  for (unsigned e = 1; e <= EPOCHS; ++e) {
    if (rank == 0) {
      if (e > 1 && BUG != 3) CK(cudaStreamWaitEvent(0, other, 0));
      if (BUG == 2) CK(cudaEventRecord(own, 0));
      fill<<<2, N / 2>>>(buf, e);
      if (BUG != 2) CK(cudaEventRecord(own, 0));
      if (BUG == 4) CK(cudaStreamSynchronize(0));
    }
    meet(s);  // "filled" has been recorded
    if (rank == 1) {
      if (BUG != 1 && BUG != 4) CK(cudaStreamWaitEvent(0, other, 0));
      if (BUG == 5) CK(cudaEventRecord(own, 0));
      add<<<2, N / 2>>>(buf, total);
      if (BUG != 5) CK(cudaEventRecord(own, 0));
    }
    meet(s);  // "read" has been recorded
  }
  CK(cudaDeviceSynchronize());
  long wrong = 0;
  std::vector<unsigned> v = get(rank, total, N);
  for (unsigned i = 0; i < N; ++i) wrong += v[i] != (rank == 1 ? (1 + 2 + 3 + 4) * i : 0);
  if (rank == 1) CK(cudaIpcCloseMemHandle(buf));
  CK(cudaEventDestroy(other));
  meet(s);
  CK(cudaEventDestroy(own));
  shm_unlink(name);
  munmap(s, sizeof(Shared));
  close(fd);
  return finish(wrong, 0);
}
