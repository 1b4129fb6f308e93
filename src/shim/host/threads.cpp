// Creation, end and join of threads, so that the node knows every thread that can still act: a
// thread is announced before it exists, says hello before it runs the program's code, and joining
// it is a wait which the node can see.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <atomic>

#include "shim/host/link.h"
#include "shim/host/real.h"
#include "wire/raw_syscall.h"

#include <sys/syscall.h>

namespace allranks::shim {
namespace {

struct Start {
  void* (*function)(void*);
  void* argument;
  std::uint64_t number;
};

// Which number a pthread_t has at the node. Both the creator and the new thread enter it, because
// either may be the first to hand the pthread_t on. An entry is replaced when its pthread_t is
// reused.
constexpr int kMaxKnown = 4096;
struct Known {
  pthread_t thread;
  std::uint64_t number;  // 0: free
};
Known g_known[kMaxKnown];
constinit std::atomic_flag g_known_lock;

class KnownLock {
 public:
  KnownLock() {
    while (g_known_lock.test_and_set(std::memory_order_acquire)) {
      wire::RawSyscall(SYS_sched_yield);
    }
  }
  ~KnownLock() { g_known_lock.clear(std::memory_order_release); }
};

void Remember(pthread_t thread, std::uint64_t number) {
  KnownLock lock;
  Known* place = nullptr;
  for (Known& known : g_known) {
    if (known.number != 0 && pthread_equal(known.thread, thread)) {
      // The creator may come late, when the thread has ended and its pthread_t names a newer one.
      if (known.number < number) known.number = number;
      return;
    }
    if (known.number == 0 && place == nullptr) place = &known;
  }
  if (place != nullptr) *place = {thread, number};
}

// The number, or 0. Forgets it if `forget`.
std::uint64_t Find(pthread_t thread, bool forget) {
  KnownLock lock;
  for (Known& known : g_known) {
    if (known.number == 0 || !pthread_equal(known.thread, thread)) continue;
    const std::uint64_t number = known.number;
    if (forget) known.number = 0;
    return number;
  }
  return 0;
}

void* Trampoline(void* raw) {
  const Start start = *static_cast<Start*>(raw);
  free(raw);
  OpenThreadLink(start.number);
  Remember(pthread_self(), start.number);
  return start.function(start.argument);
}

}  // namespace
}  // namespace allranks::shim

namespace shim = allranks::shim;

ALLRANKS_INTERPOSE int pthread_create(pthread_t* __restrict thread,
                                      const pthread_attr_t* __restrict attributes,
                                      void* (*function)(void*), void* __restrict argument) {
  shim::Thread* self = shim::Self();
  if (self == nullptr) return ALLRANKS_REAL(pthread_create)(thread, attributes, function, argument);
  auto* start = static_cast<shim::Start*>(malloc(sizeof(shim::Start)));
  if (start == nullptr) return EAGAIN;
  allranks::wire::NewThreadReply reply;
  if (shim::Call(self, allranks::wire::NewThread{}, &reply) != 0) {
    free(start);
    return ALLRANKS_REAL(pthread_create)(thread, attributes, function, argument);
  }
  *start = {function, argument, reply.thread};
  const int error = ALLRANKS_REAL(pthread_create)(thread, attributes, shim::Trampoline, start);
  if (error != 0) {
    free(start);
    allranks::wire::ThreadExit failed;
    failed.thread = reply.thread;
    shim::Call(self, failed);
    return error;
  }
  shim::Remember(*thread, reply.thread);
  return 0;
}

ALLRANKS_INTERPOSE int pthread_join(pthread_t thread, void** value) {
  shim::Thread* self = shim::Self();
  if (self != nullptr && !pthread_equal(thread, pthread_self())) {
    allranks::wire::WaitThread wait;
    wait.thread = shim::Find(thread, true);
    if (wait.thread != 0) shim::Call(self, wait);
  }
  return ALLRANKS_REAL(pthread_join)(thread, value);
}

ALLRANKS_INTERPOSE int pthread_detach(pthread_t thread) {
  shim::Find(thread, true);
  return ALLRANKS_REAL(pthread_detach)(thread);
}
