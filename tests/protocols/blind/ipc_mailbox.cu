// Two processes, each with an inbox on its own device that is opened in the other process by cudaIpcOpenMemHandle; the
// kernels exchange messages through them: data, release of a flag, acquire, acknowledgement before the next message.
// EXPECT 1 race: the flag is a relaxed store without a fence
// EXPECT 2 scope: the flag is released at gpu scope, the reader is on another device
// EXPECT 3 race: the sender does not wait for the acknowledgement and overwrites the message
// EXPECT 4 race: the receiver polls by relaxed loads without a fence
// EXPECT 5 none: fence.acq_rel.sys by the flag's writer after the barrier, then a relaxed store
// EXPECT 6 race: the acknowledgement is sent before the block barrier, while other threads still read
// RANKS 2
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "common.h"

static const int N = 64, ROUNDS = 4;

struct Inbox {
  unsigned data[N], flag, ack;
};

struct Shared {
  cudaIpcMemHandle_t handle[2];
  std::atomic<int> arrived;
};

static void meet(Shared* s, int times) {
  s->arrived.fetch_add(1);
  while (s->arrived.load() < 2 * times) usleep(100);
}

// data and flag are in the inbox of the receiver, the acknowledgement is in that of the sender.
static __global__ void exchange(Inbox* mine, Inbox* other, unsigned* sum, unsigned rank) {
  int i = threadIdx.x;
  for (unsigned r = 1; r <= ROUNDS; ++r) {
    if (i == 0 && BUG != 3) wait_ge(&mine->ack, r - 1);
    __syncthreads();
    other->data[i] = r * 10 + rank + i;
    __syncthreads();
    if (i == 0) {
#if BUG == 1
      st_relaxed(&other->flag, r);
#elif BUG == 2
      asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(&other->flag), "r"(r) : "memory");
#elif BUG == 5
      asm volatile("fence.acq_rel.sys;" ::: "memory");
      st_relaxed(&other->flag, r);
#else
      st_release(&other->flag, r);
#endif
      while (static_cast<int>((BUG == 4 ? ld_relaxed(&mine->flag) : ld_acquire(&mine->flag)) - r) <
             0) {
      }
    }
    __syncthreads();
    sum[i] += mine->data[i];
    if (BUG != 6) __syncthreads();
    if (i == 0) st_release(&other->ack, r);
  }
}

int main() {
  const int rank = std::atoi(std::getenv("RANK"));
  char name[64];
  std::snprintf(name, sizeof name, "/blind_ipc_mailbox_%d", static_cast<int>(getppid()));
  int fd = shm_open(name, O_CREAT | O_RDWR, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Shared)) != 0) return 3;
  Shared* s = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));

  Inbox *mine = alloc<Inbox>(rank, 1), *other;
  unsigned* sum = alloc<unsigned>(rank, N);
  CK(cudaDeviceSynchronize());
  CK(cudaIpcGetMemHandle(&s->handle[rank], mine));
  meet(s, 1);
  CK(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&other), s->handle[1 - rank],
                          cudaIpcMemLazyEnablePeerAccess));
  exchange<<<1, N>>>(mine, other, sum, rank);
  CK(cudaDeviceSynchronize());
  long wrong = 0;
  std::vector<unsigned> v = get(rank, sum, N);
  for (unsigned i = 0; i < N; ++i) wrong += v[i] != 10 * (1 + 2 + 3 + 4) + ROUNDS * (1 - rank + i);
  CK(cudaIpcCloseMemHandle(other));
  meet(s, 2);
  shm_unlink(name);
  munmap(s, sizeof(Shared));
  close(fd);
  return finish(wrong, 0);
}
