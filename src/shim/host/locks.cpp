// Waiting for another host thread: mutexes, conditions, semaphores, barriers, futexes. Their
// uncontended ways stay native. A thread that has to wait registers at the node under the lock's
// key (WatchKey), looks once more, and waits there (WaitKey); whoever releases sends WakeKey if
// somebody is registered.
//
// No wake-up is lost: a waiter is counted before it registers, registers before it looks again, and
// the other side changes the lock before it reads the count.
//
// Conditions have no native state at all: pthread_cond_t only gives the key. Mutexes, semaphores
// and read-write locks keep libc's, through their try functions. Robust and priority-inheriting
// mutexes are left to libc.
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "shim/host/clock.h"
#include "shim/host/keys.h"
#include "shim/host/link.h"
#include "shim/host/pinned.h"
#include "shim/host/real.h"
#include "wire/raw_syscall.h"

namespace allranks::shim {
namespace {

using wire::RawSyscall;

// Bits of glibc's own, read here because no function tells them.
bool IsShared(const pthread_mutex_t* mutex) { return (mutex->__data.__kind & 128) != 0; }
bool IsPlain(const pthread_mutex_t* mutex) {
  return (mutex->__data.__kind & ~(128 | 256 | 512 | 3)) == 0;
}
bool IsShared(const pthread_cond_t* condition) { return (condition->__data.__wrefs & 1) != 0; }
clockid_t ClockOf(const pthread_cond_t* condition) {
  return (condition->__data.__wrefs & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}
bool IsShared(const pthread_rwlock_t* lock) { return lock->__data.__shared != 0; }
// sem_t: value, then `private` (0 or FUTEX_PRIVATE... is kept as 0 for private, 128 for shared).
bool IsShared(const sem_t* semaphore) {
  int flag;
  memcpy(&flag, semaphore->__size + 8, sizeof flag);
  return flag != 0;
}
struct BarrierFields {
  unsigned in, round, count;
  int shared;
};
BarrierFields FieldsOf(const pthread_barrier_t* barrier) {
  BarrierFields fields;
  memcpy(&fields, barrier->__size, sizeof fields);
  return fields;
}

constexpr std::int64_t kForever = INT64_MAX;

// Takes a lock by `attempt` (0: taken, EBUSY or EAGAIN: not yet, else an error), waiting at the
// node in between until `deadline_ns` on `clock`. -1: the node is gone, wait natively.
template <class F>
int Acquire(Thread* self, const void* address, bool shared, clockid_t clock,
            std::int64_t deadline_ns, F attempt) {
  const wire::Key key = KeyOf(address, shared);
  for (;;) {
    std::int64_t left_ps = -1;
    if (deadline_ns != kForever) {
      left_ps = (deadline_ns - VirtualNowNs(self, clock)) * 1000;
      if (left_ps <= 0) return ETIMEDOUT;
    }
    Watch watch(self, key);
    if (!watch.linked()) return -1;
    const int result = attempt();
    if (result != EBUSY && result != EAGAIN) {
      watch.Cancel();
      return result;
    }
    watch.Wait(left_ps);
    if (!watch.linked()) return -1;
    const int again = attempt();
    if (again != EBUSY && again != EAGAIN) return again;
  }
}

int LockMutex(pthread_mutex_t* mutex, clockid_t clock, const timespec* deadline, bool* native) {
  *native = false;
  Thread* self = Self();
  if (self == nullptr || !IsPlain(mutex)) {
    *native = true;
    return 0;
  }
  const int first = ALLRANKS_REAL(pthread_mutex_trylock)(mutex);
  if (first != EBUSY) return first;
  // Locking again what it has: an error-checking mutex says so.
  if ((mutex->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK &&
      mutex->__data.__owner == RawSyscall(SYS_gettid)) {
    return EDEADLK;
  }
  const int result =
      Acquire(self, mutex, IsShared(mutex), clock, deadline == nullptr ? kForever : ToNs(*deadline),
              [&] { return ALLRANKS_REAL(pthread_mutex_trylock)(mutex); });
  *native = result < 0;
  return result;
}

// A condition's wait. Spurious wake-ups are allowed, which is what remains without a node.
int WaitCondition(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                  const timespec* deadline) {
  Thread* self = Self();
  if (self == nullptr) {
    pthread_mutex_unlock(mutex);
    const timespec pause{0, 1'000'000};
    RawSyscall(SYS_nanosleep, reinterpret_cast<long>(&pause));
    pthread_mutex_lock(mutex);
    if (deadline == nullptr) return 0;
    timespec now;
    clock_gettime(clock, &now);
    return ToNs(now) >= ToNs(*deadline) ? ETIMEDOUT : 0;
  }
  std::int64_t left_ps = -1;
  if (deadline != nullptr) {
    if (deadline->tv_nsec < 0 || deadline->tv_nsec >= kNsPerSecond) return EINVAL;
    left_ps = (ToNs(*deadline) - VirtualNowNs(self, clock)) * 1000;
    if (left_ps < 0) left_ps = 0;
  }
  bool woken;
  {
    Watch watch(self, KeyOf(condition, IsShared(condition)));
    const int unlocked = pthread_mutex_unlock(mutex);
    if (unlocked != 0) {
      watch.Cancel();
      return unlocked;
    }
    woken = watch.Wait(left_ps) || !watch.linked();
  }
  const int locked = pthread_mutex_lock(mutex);
  if (locked != 0) return locked;
  return woken ? 0 : ETIMEDOUT;
}

// True if conditions are ours in this process. Before the node is joined, or without one, libc has
// them.
bool OwnConditions() { return Linked() || Self() != nullptr; }

long Futex(int* address, int operation, int value, const timespec* timeout, long extra, int bits,
           bool* handled) {
  Thread* self = Self();
  const int command = operation & FUTEX_CMD_MASK;
  const bool shared = (operation & FUTEX_PRIVATE_FLAG) == 0;
  *handled = true;
  if (self != nullptr && (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET)) {
    return Wake(address, shared, value < 0 ? 0 : static_cast<std::uint32_t>(value));
  }
  if (self != nullptr && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET)) {
    std::int64_t left_ps = -1;
    if (timeout != nullptr) {
      left_ps = ToNs(*timeout);
      if (command == FUTEX_WAIT_BITSET) {  // absolute
        left_ps -= VirtualNowNs(
            self, (operation & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC);
      }
      left_ps = left_ps < 0 ? 0 : left_ps * 1000;
    }
    Watch watch(self, KeyOf(address, shared));
    if (std::atomic_ref<int>(*address).load() != value) {
      watch.Cancel();
      errno = EAGAIN;
      return -1;
    }
    if (!watch.Wait(left_ps) && watch.linked()) {
      errno = ETIMEDOUT;
      return -1;
    }
    return 0;
  }
  *handled = false;
  (void)extra;
  (void)bits;
  return 0;
}

}  // namespace

}  // namespace allranks::shim

namespace shim = allranks::shim;

// --- mutexes -----------------------------------------------------------------------------------

ALLRANKS_INTERPOSE int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  bool native;
  const int result = shim::LockMutex(mutex, CLOCK_REALTIME, nullptr, &native);
  return native ? ALLRANKS_REAL(pthread_mutex_lock)(mutex) : result;
}

ALLRANKS_INTERPOSE int pthread_mutex_timedlock(pthread_mutex_t* __restrict mutex,
                                               const timespec* __restrict deadline) noexcept {
  bool native;
  const int result = shim::LockMutex(mutex, CLOCK_REALTIME, deadline, &native);
  return native ? ALLRANKS_REAL(pthread_mutex_timedlock)(mutex, deadline) : result;
}

ALLRANKS_INTERPOSE int pthread_mutex_clocklock(pthread_mutex_t* __restrict mutex, clockid_t clock,
                                               const timespec* __restrict deadline) noexcept {
  bool native;
  const int result = shim::LockMutex(mutex, clock, deadline, &native);
  return native ? ALLRANKS_REAL(pthread_mutex_clocklock)(mutex, clock, deadline) : result;
}

ALLRANKS_INTERPOSE int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  const int result = ALLRANKS_REAL(pthread_mutex_trylock)(mutex);
  if (result == EBUSY) {
    shim::Thread* self = shim::Self();
    if (self != nullptr) shim::Call(self, allranks::wire::Yield{});
  }
  return result;
}

ALLRANKS_INTERPOSE int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  const bool shared = shim::IsShared(mutex);
  const int result = ALLRANKS_REAL(pthread_mutex_unlock)(mutex);
  if (result == 0) shim::Wake(mutex, shared, 1);
  return result;
}

// --- conditions --------------------------------------------------------------------------------

ALLRANKS_INTERPOSE int pthread_cond_wait(pthread_cond_t* __restrict condition,
                                         pthread_mutex_t* __restrict mutex) {
  if (!shim::OwnConditions()) return ALLRANKS_REAL(pthread_cond_wait)(condition, mutex);
  return shim::WaitCondition(condition, mutex, CLOCK_REALTIME, nullptr);
}

ALLRANKS_INTERPOSE int pthread_cond_timedwait(pthread_cond_t* __restrict condition,
                                              pthread_mutex_t* __restrict mutex,
                                              const timespec* __restrict deadline) {
  if (!shim::OwnConditions()) {
    return ALLRANKS_REAL(pthread_cond_timedwait)(condition, mutex, deadline);
  }
  return shim::WaitCondition(condition, mutex, shim::ClockOf(condition), deadline);
}

ALLRANKS_INTERPOSE int pthread_cond_clockwait(pthread_cond_t* __restrict condition,
                                              pthread_mutex_t* __restrict mutex, clockid_t clock,
                                              const timespec* __restrict deadline) {
  if (!shim::OwnConditions()) {
    return ALLRANKS_REAL(pthread_cond_clockwait)(condition, mutex, clock, deadline);
  }
  return shim::WaitCondition(condition, mutex, clock, deadline);
}

ALLRANKS_INTERPOSE int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  if (!shim::OwnConditions()) return ALLRANKS_REAL(pthread_cond_signal)(condition);
  shim::Wake(condition, shim::IsShared(condition), 1);
  return 0;
}

ALLRANKS_INTERPOSE int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (!shim::OwnConditions()) return ALLRANKS_REAL(pthread_cond_broadcast)(condition);
  shim::Wake(condition, shim::IsShared(condition), UINT_MAX);
  return 0;
}

// --- semaphores, barriers, read-write locks ----------------------------------------------------

namespace {

int TrySemaphore(sem_t* semaphore) {
  return ALLRANKS_REAL(sem_trywait)(semaphore) == 0 ? 0 : errno;
}

// Like sem_wait, or -2 if it is to be done natively.
int WaitSemaphore(sem_t* semaphore, clockid_t clock, const timespec* deadline) {
  shim::Thread* self = shim::Self();
  if (self == nullptr) return -2;
  int result = TrySemaphore(semaphore);
  if (result == EAGAIN) {
    result = shim::Acquire(self, semaphore, shim::IsShared(semaphore), clock,
                           deadline == nullptr ? shim::kForever : shim::ToNs(*deadline),
                           [&] { return TrySemaphore(semaphore); });
  }
  if (result < 0) return -2;
  if (result == 0) return 0;
  errno = result;
  return -1;
}

template <class F>
int WaitReadWriteLock(pthread_rwlock_t* lock, F attempt) {
  shim::Thread* self = shim::Self();
  if (self == nullptr) return -1;
  const int first = attempt();
  if (first != EBUSY) return first;
  return shim::Acquire(self, lock, shim::IsShared(lock), CLOCK_REALTIME, shim::kForever, attempt);
}

}  // namespace

ALLRANKS_INTERPOSE int sem_wait(sem_t* semaphore) {
  const int result = WaitSemaphore(semaphore, CLOCK_REALTIME, nullptr);
  return result == -2 ? ALLRANKS_REAL(sem_wait)(semaphore) : result;
}

ALLRANKS_INTERPOSE int sem_timedwait(sem_t* __restrict semaphore,
                                     const timespec* __restrict deadline) {
  const int result = WaitSemaphore(semaphore, CLOCK_REALTIME, deadline);
  return result == -2 ? ALLRANKS_REAL(sem_timedwait)(semaphore, deadline) : result;
}

ALLRANKS_INTERPOSE int sem_clockwait(sem_t* __restrict semaphore, clockid_t clock,
                                     const timespec* __restrict deadline) {
  const int result = WaitSemaphore(semaphore, clock, deadline);
  return result == -2 ? ALLRANKS_REAL(sem_clockwait)(semaphore, clock, deadline) : result;
}

ALLRANKS_INTERPOSE int sem_trywait(sem_t* semaphore) noexcept {
  const int result = ALLRANKS_REAL(sem_trywait)(semaphore);
  const int error = errno;
  shim::Thread* self = result == 0 ? nullptr : shim::Self();
  if (self != nullptr) shim::Call(self, allranks::wire::Yield{});
  errno = error;
  return result;
}

ALLRANKS_INTERPOSE int sem_post(sem_t* semaphore) noexcept {
  const bool shared = shim::IsShared(semaphore);
  const int result = ALLRANKS_REAL(sem_post)(semaphore);
  if (result == 0) shim::Wake(semaphore, shared, 1);
  return result;
}

ALLRANKS_INTERPOSE int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  shim::Thread* self = shim::Self();
  if (self != nullptr) {
    const shim::BarrierFields fields = shim::FieldsOf(barrier);
    allranks::wire::BarrierWait wait;
    wait.key = shim::KeyOf(barrier, fields.shared != 0);
    wait.count = fields.count;
    allranks::wire::BarrierWaitReply reply;
    if (shim::Call(self, wait, &reply) == 0) return reply.last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
  }
  return ALLRANKS_REAL(pthread_barrier_wait)(barrier);
}

ALLRANKS_INTERPOSE int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  const int result =
      WaitReadWriteLock(lock, [&] { return ALLRANKS_REAL(pthread_rwlock_tryrdlock)(lock); });
  return result < 0 ? ALLRANKS_REAL(pthread_rwlock_rdlock)(lock) : result;
}

ALLRANKS_INTERPOSE int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  const int result =
      WaitReadWriteLock(lock, [&] { return ALLRANKS_REAL(pthread_rwlock_trywrlock)(lock); });
  return result < 0 ? ALLRANKS_REAL(pthread_rwlock_wrlock)(lock) : result;
}

ALLRANKS_INTERPOSE int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  const bool shared = shim::IsShared(lock);
  const int result = ALLRANKS_REAL(pthread_rwlock_unlock)(lock);
  if (result == 0) shim::Wake(lock, shared, UINT_MAX);
  return result;
}

// --- futexes -----------------------------------------------------------------------------------

// std::atomic::wait and std::future wait by syscall(SYS_futex).
ALLRANKS_INTERPOSE long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long argument[6];
  for (long& value : argument) value = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex) {
    bool handled;
    const long result =
        shim::Futex(reinterpret_cast<int*>(argument[0]), static_cast<int>(argument[1]),
                    static_cast<int>(argument[2]), reinterpret_cast<const timespec*>(argument[3]),
                    argument[4], static_cast<int>(argument[5]), &handled);
    if (handled) return result;
  }
  shim::OpenPinnedPages();  // an argument may point there
  const long result = allranks::wire::RawSyscall(number, argument[0], argument[1], argument[2],
                                                 argument[3], argument[4], argument[5]);
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}
