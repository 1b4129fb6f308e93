// Host threads wait for a device and for one another, and all of it ends: the correct counterparts
// of deadlock/host_*. Nothing here may be taken for a deadlock, however slow the machine is.
// nvcc: -std=c++20 -Xcompiler -fopenmp
// run stop: | stop
// run openmp: | openmp
// run openmp_poll: | openmp_poll
// run joined: | joined
// run condition: | condition
// run barrier: | barrier
// run computing: | computing
#include <omp.h>

#include <barrier>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <string>
#include <thread>

#include "host_echo.h"

namespace {

void AwaitAnswer(Mailbox* mailbox) {
  while (Answer(mailbox) == 0) {
  }
}

// A poller is told to stop by a plain flag, and the answer comes only then.
void Stop(Mailbox* mailbox) {
  std::atomic<bool> stop{false};
  std::thread poller([&] {
    while (Answer(mailbox) == 0 && !stop.load(std::memory_order_relaxed)) {
    }
    Send(mailbox, 1);
  });
  stop = true;
  poller.join();
}

void OpenMp(Mailbox* mailbox) {
  int rounds = 0;
#pragma omp parallel num_threads(4)
  {
    for (int i = 0; i < 20; ++i) {
#pragma omp barrier
      if (omp_get_thread_num() == i % 4) ++rounds;
#pragma omp barrier
    }
    if (omp_get_thread_num() == 3) Send(mailbox, 1);
    if (omp_get_thread_num() == 1) CUDA_CHECK(cudaDeviceSynchronize());
#pragma omp barrier
    if (omp_get_thread_num() == 2) AwaitAnswer(mailbox);
  }
  REQUIRE(rounds == 20, "%d rounds", rounds);
}

void OpenMpPoll(Mailbox* mailbox) {
  int sum = 0;
#pragma omp parallel for ordered num_threads(3) schedule(static, 1) reduction(+ : sum)
  for (int i = 0; i < 6; ++i) {
    if (i == 2) AwaitAnswer(mailbox);
    if (i == 1) Send(mailbox, 1);
#pragma omp ordered
    sum += i;
  }
  REQUIRE(sum == 15, "a sum of %d", sum);
}

void Joined(Mailbox* mailbox) {
  std::mutex mutex;
  std::atomic<bool> sent{false};
  std::thread sender([&] {
    std::lock_guard lock(mutex);
    Send(mailbox, 1);
    sent = true;
    sent.notify_all();
  });
  std::thread poller([&] {
    sent.wait(false);
    std::lock_guard lock(mutex);
    AwaitAnswer(mailbox);
  });
  poller.join();
  sender.join();
}

void Condition(Mailbox* mailbox) {
  std::mutex mutex;
  std::condition_variable condition;
  bool go = false;
  std::thread sender([&] {
    std::unique_lock lock(mutex);
    condition.wait(lock, [&] { return go; });
    Send(mailbox, 1);
  });
  {
    std::lock_guard lock(mutex);
    go = true;
  }
  condition.notify_one();
  CUDA_CHECK(cudaDeviceSynchronize());
  sender.join();
}

void Barrier(Mailbox* mailbox) {
  std::barrier<> barrier(3);
  std::latch latch(2);
  std::thread first([&] {
    latch.count_down();
    barrier.arrive_and_wait();
  });
  std::thread second([&] {
    latch.wait();
    Send(mailbox, 1);
    barrier.arrive_and_wait();
  });
  latch.count_down();
  CUDA_CHECK(cudaDeviceSynchronize());
  barrier.arrive_and_wait();
  first.join();
  second.join();
}

// All wait for a thread that makes no call for a while, and then acts. Clocks stand still
// meanwhile.
void Computing(Mailbox* mailbox) {
#pragma omp parallel num_threads(3)
  {
    if (omp_get_thread_num() == 0) {
      volatile uint32_t work = 0;
      for (int i = 0; i < 30'000'000; ++i) work = work + 1;
      Send(mailbox, 1);
    }
    if (omp_get_thread_num() == 1) AwaitAnswer(mailbox);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "stop";
  Mailbox* mailbox = StartEcho();
  if (kind == "stop") {
    Stop(mailbox);
  } else if (kind == "openmp") {
    OpenMp(mailbox);
  } else if (kind == "openmp_poll") {
    OpenMpPoll(mailbox);
  } else if (kind == "joined") {
    Joined(mailbox);
  } else if (kind == "condition") {
    Condition(mailbox);
  } else if (kind == "barrier") {
    Barrier(mailbox);
  } else if (kind == "computing") {
    Computing(mailbox);
  } else {
    Fail(__FILE__, __LINE__, "unknown kind %s", kind.c_str());
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(Answer(mailbox) == 1, "no answer");
  std::printf("all waits have ended\n");
  return 0;
}
