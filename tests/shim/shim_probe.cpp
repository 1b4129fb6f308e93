// A program that uses one kind of wait and says with its exit code whether it went as it should: 0,
// or the line that did not hold. `shim_test` runs it under the host library.
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "shim/abi.h"

namespace {

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::fprintf(stderr, "shim_probe: line %d: %s\n", __LINE__, #condition); \
      _exit(100);                                                              \
    }                                                                          \
  } while (false)

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
namespace wire = allranks::wire;

int Threads() {
  std::atomic<int> sum{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&, i] { sum += i; });
  for (auto& thread : threads) thread.join();
  EXPECT(sum == 6);
  return 0;
}

int Fork() {
  int ends[2];
  EXPECT(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::this_thread::sleep_for(1s);
    EXPECT(write(ends[1], "hello", 5) == 5);
    _exit(7);
  }
  char text[6] = {};
  EXPECT(read(ends[0], text, 5) == 5);
  EXPECT(std::string(text) == "hello");
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  return 0;
}

int Spawn() {
  EXPECT(WEXITSTATUS(system("exit 3")) == 3);
  EXPECT(getenv("ALLRANKS_JOIN") == nullptr);
  return 0;
}

int Time() {
  const auto start = Clock::now();
  const std::time_t wall = std::time(nullptr);
  std::this_thread::sleep_for(1000s);
  usleep(500);
  EXPECT(Clock::now() - start >= 1000s);
  EXPECT(Clock::now() - start < 1001s);
  EXPECT(std::time(nullptr) - wall >= 1000);
  auto last = Clock::now();
  for (int i = 0; i < 5000; ++i) {  // also beyond the point where reading yields
    const auto now = Clock::now();
    EXPECT(now > last);
    last = now;
  }
  pollfd none{-1, 0, 0};
  const auto before = Clock::now();
  EXPECT(poll(&none, 1, 30000) == 0);
  EXPECT(Clock::now() - before >= 30s);
  return 0;
}

int Locks() {
  std::mutex mutex;
  std::condition_variable condition;
  int turn = 0;
  std::thread other([&] {
    for (int i = 0; i < 50; ++i) {
      std::unique_lock lock(mutex);
      condition.wait(lock, [&] { return turn == 1; });
      turn = 0;
      condition.notify_one();
    }
  });
  for (int i = 0; i < 50; ++i) {
    std::unique_lock lock(mutex);
    turn = 1;
    condition.notify_one();
    condition.wait(lock, [&] { return turn == 0; });
  }
  other.join();

  {  // a timeout in virtual time
    std::unique_lock lock(mutex);
    const auto before = Clock::now();
    EXPECT(condition.wait_for(lock, 500s) == std::cv_status::timeout);
    EXPECT(Clock::now() - before >= 500s);
  }

  long counter = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) {
        std::lock_guard lock(mutex);
        const long seen = counter;
        if (j % 50 == 0) std::this_thread::sleep_for(1ms);
        counter = seen + 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT(counter == 800);

  std::atomic<int> flag{0};
  std::thread waiter([&] {
    flag.wait(0);
    flag = 2;
    flag.notify_all();
  });
  std::this_thread::sleep_for(1ms);
  flag = 1;
  flag.notify_all();
  flag.wait(1);
  EXPECT(flag == 2);
  waiter.join();

  sem_t semaphore;
  EXPECT(sem_init(&semaphore, 0, 0) == 0);
  std::thread poster([&] {
    std::this_thread::sleep_for(1s);
    sem_post(&semaphore);
  });
  EXPECT(sem_wait(&semaphore) == 0);
  poster.join();

  pthread_barrier_t barrier;
  EXPECT(pthread_barrier_init(&barrier, nullptr, 3) == 0);
  std::atomic<int> last{0};
  const auto arrive = [&] {
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) ++last;
  };
  std::thread first(arrive), second(arrive);
  arrive();
  first.join();
  second.join();
  EXPECT(last == 1);
  return 0;
}

// Memory that two processes share: a barrier and a semaphore in it.
int Shared() {
  struct Both {
    pthread_barrier_t barrier;
    sem_t semaphore;
    int value;
  };
  auto* both = static_cast<Both*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  EXPECT(pthread_barrier_init(&both->barrier, &attributes, 2) == 0);
  EXPECT(sem_init(&both->semaphore, 1, 0) == 0);
  const pid_t child = fork();
  if (child == 0) {
    both->value = 42;
    pthread_barrier_wait(&both->barrier);
    sem_wait(&both->semaphore);
    _exit(both->value == 43 ? 0 : 1);
  }
  pthread_barrier_wait(&both->barrier);
  EXPECT(both->value == 42);
  both->value = 43;
  sem_post(&both->semaphore);
  int status = 0;
  EXPECT(wait(&status) == child);
  EXPECT(status == 0);
  return 0;
}

volatile int* Pinned() {
  wire::AllocPinnedReply reply;
  wire::AllocPinned alloc;
  alloc.size = 4096;
  int fd = -1;
  EXPECT(allranks::shim::Call(alloc, &reply, &fd) == 0);
  EXPECT(fd >= 0);
  EXPECT(ar_map_pinned(reply.address, reply.size, fd));
  return reinterpret_cast<volatile int*>(reply.address);
}

// Spins on pinned memory, which the node changes only when it is told of the spin.
int Spin() {
  volatile int* flags = Pinned();
  flags[8] = 5;
  EXPECT(allranks::shim::Call(wire::DeviceSync{}) == 0);  // the node says it is busy
  for (int round = 1; round <= 20; ++round) {
    while (flags[0] != round) {
    }
    flags[4] = round;
  }
  while (flags[0] + flags[1] < 30) {  // two addresses in one loop
  }
  EXPECT(flags[8] == 5);
  return 0;
}

// A loop that counts its rounds, and one that reads all of the memory before it spins.
int Count() {
  volatile int* flags = Pinned();
  EXPECT(allranks::shim::Call(wire::DeviceSync{}) == 0);
  long rounds = 0;
  while (flags[0] < 3) ++rounds;
  EXPECT(rounds > 0);
  int sum = 0;
  for (int i = 1; i < 1024; ++i) sum += flags[i];
  EXPECT(sum == 0);
  while (flags[0] < 4) {
  }
  return 0;
}

// A loop whose counter is neither in a register nor on the stack.
int CountElsewhere() {
  static volatile long rounds;
  volatile int* flags = Pinned();
  flags[9] = 1;
  EXPECT(allranks::shim::Call(wire::DeviceSync{}) == 0);
  while (flags[0] == 0 && rounds != 100'000) rounds = rounds + 1;
  EXPECT(rounds == 100'000);
  return 0;
}

void StoreNowhere() {
  volatile std::uintptr_t nowhere = 64;
  *reinterpret_cast<volatile int*>(nowhere) = 1;
}

// A fault of the program's own still kills it, and its own handler still runs.
int OwnFault() {
  Pinned();
  struct sigaction action{};
  action.sa_handler = [](int) { _exit(55); };
  EXPECT(sigaction(SIGSEGV, &action, nullptr) == 0);
  StoreNowhere();
  return 1;
}

int Crash() {
  Pinned();
  StoreNowhere();
  return 1;
}

// The node ends in the middle of a call: the call fails, and so do all later ones, at once.
int NodeDies() {
  timespec start, end;
  EXPECT(allranks::shim::Call(wire::StickyError{}) == 999);
  EXPECT(allranks::shim::Call(wire::Init{}) == 999);
  clock_gettime(CLOCK_MONOTONIC, &start);
  std::this_thread::sleep_for(2ms);  // goes on natively
  clock_gettime(CLOCK_MONOTONIC, &end);
  EXPECT(end.tv_sec - start.tv_sec < 2);
  std::thread([] {}).join();
  return 0;
}

int ForkAfterCuda() {
  volatile int* flags = Pinned();
  flags[0] = 11;
  ar_cuda_initialised();
  const pid_t child = fork();
  if (child == 0) {
    EXPECT(ar_cuda_lost_by_fork());
    EXPECT(flags[0] == 11);
    flags[0] = 12;  // a private copy
    _exit(0);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(status == 0);
  EXPECT(!ar_cuda_lost_by_fork());
  EXPECT(flags[0] == 11);
  return 0;
}

int CloseAll() {
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  closefrom(3);
  EXPECT(close_range(3, ~0u, 0) == 0);
  std::this_thread::sleep_for(10s);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "threads") return Threads();
  if (what == "fork") return Fork();
  if (what == "spawn") return Spawn();
  if (what == "time") return Time();
  if (what == "locks") return Locks();
  if (what == "shared") return Shared();
  if (what == "spin") return Spin();
  if (what == "count") return Count();
  if (what == "count_elsewhere") return CountElsewhere();
  if (what == "own_fault") return OwnFault();
  if (what == "crash") return Crash();
  if (what == "node_dies") return NodeDies();
  if (what == "fork_after_cuda") return ForkAfterCuda();
  if (what == "close_all") return CloseAll();
  return 2;
}
