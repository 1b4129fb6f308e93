// Request and reply through a mailbox of one slot in the server's memory: state 1 is a request, 2 a reply; the client
// takes the reply and writes the next request into the same words.
// EXPECT 1 race: the reply's state is stored relaxed without a fence
// EXPECT 2 weak_spin|race: the server polls the state by weak loads
// EXPECT 3 none: volatile polls and stores between fences of system scope, by the thread that polls or stores
// EXPECT 4 race: the client's fence is before the block barrier and the state store after it, in another thread
// EXPECT 5 scope: the server, polling its own memory, acquires at gpu scope
#include "common.h"

constexpr int kThreads = 64, kCalls = 4;

struct Mail {
  unsigned* body;   // [kThreads]
  unsigned* state;  // odd: request, even: reply; counts up
  unsigned* out;    // [kCalls][kThreads]
};

DEV void post(unsigned* state, unsigned v, bool reply) {
  __syncthreads();
  if (threadIdx.x) return;
  if (BUG == 3) {
    __threadfence_system();
    *static_cast<volatile unsigned*>(state) = v;
  } else if ((BUG == 1 && reply) || (BUG == 4 && !reply)) {
    st_relaxed(state, v);
  } else {
    st_release(state, v);
  }
}

DEV void await(unsigned* state, unsigned v, bool request) {
  if (threadIdx.x == 0) {
    unsigned s;
    do {
      if (BUG == 2 && request)
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(s) : "l"(state) : "memory");
      else if (BUG == 5 && request)
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(s) : "l"(state) : "memory");
      else if (BUG == 3)
        s = *static_cast<volatile unsigned*>(state);
      else
        s = ld_acquire(state);
    } while (s != v);
    if (BUG == 3) __threadfence_system();
  }
  __syncthreads();
}

__global__ void client(Mail m) {
  const int t = threadIdx.x;
  for (unsigned c = 0; c < kCalls; ++c) {
    m.body[t] = c * 100 + t;
    if (BUG == 4) asm volatile("fence.acq_rel.sys;" ::: "memory");
    post(m.state, 2 * c + 1, false);
    await(m.state, 2 * c + 2, false);
    m.out[c * kThreads + t] = m.body[t];
  }
}

__global__ void server(Mail m) {
  const int t = threadIdx.x;
  for (unsigned c = 0; c < kCalls; ++c) {
    await(m.state, 2 * c + 1, true);
    m.body[t] = m.body[t] * 3 + 1;
    post(m.state, 2 * c + 2, true);
  }
}

int main() {
  peers(2);
  const Mail m = {alloc<unsigned>(1, kThreads), alloc<unsigned>(1, 1),
                  alloc<unsigned>(0, kCalls * kThreads)};
  sync_all(2);
  CK(cudaSetDevice(0));
  client<<<1, kThreads>>>(m);
  CK(cudaGetLastError());
  CK(cudaSetDevice(1));
  server<<<1, kThreads>>>(m);
  CK(cudaGetLastError());
  sync_all(2);
  long wrong = 0;
  const auto out = get(0, m.out, kCalls * kThreads);
  for (int j = 0; j < kCalls * kThreads; ++j)
    wrong += out[j] != unsigned(3 * (j / kThreads * 100 + j % kThreads) + 1);
  return finish(wrong, 2);
}
