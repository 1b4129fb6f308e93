// The windows of a session, for the threads that execute them.
//
// The owner of the queue accepts results in the order of the list. Executing a window is pure: its
// result follows from world, case, window, seed and what the candidate has captured. So windows may
// be executed in any order and by several workers, each with a session of its own. A worker that
// executes one window of a case executes all of them: a candidate whose host code captures
// something else in each session must not have its bursts and its replays executed on different
// captures. Results after the last one that is accepted are discarded.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace allranks::judge {

// A task has a `place`, the case that it belongs to, and a `weight`: how long it takes, compared
// with others.
template <class Task, class Result>
class WindowQueue {
 public:
  // Replaces the list; no result of the old one is wanted any more.
  void Fill(std::vector<Task> tasks) {
    const std::lock_guard lock(mutex_);
    ++list_;
    tasks_ = std::move(tasks);
    results_.assign(tasks_.size(), std::nullopt);
    open_.resize(tasks_.size());
    std::iota(open_.begin(), open_.end(), std::size_t{0});
    changed_.notify_all();
  }

  // For the owner, who calls it in order: the result of the task at `index`. Executes tasks that no
  // other worker has begun until it is there.
  template <class Execute>
  Result Obtain(std::size_t index, const Execute& execute) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (results_[index]) return *std::exchange(results_[index], std::nullopt);
      const auto next = std::find_if(open_.begin(), open_.end(), [&](std::size_t task) {
        return IsFree(task) || IsOf(kOwner, task);
      });
      if (next == open_.end()) {
        changed_.wait(lock);
      } else {
        ExecuteOne(kOwner, next, lock, execute);
      }
    }
  }

  // For a helper, a number from 1 on: executes tasks until the queue is closed or `usable()` is
  // false, which means that its session has ended.
  template <class Execute, class Usable>
  void Help(int helper, const Execute& execute, const Usable& usable) {
    std::unique_lock lock(mutex_);
    while (!closed_ && usable()) {
      const auto next = NextFor(helper);
      if (next == open_.end()) {
        changed_.wait(lock);
      } else {
        ExecuteOne(helper, next, lock, execute);
      }
    }
    std::erase_if(workers_, [&](const auto& one) { return one.second == helper; });
    changed_.notify_all();
  }

  // A helper comes, unless every case has its worker.
  bool Enter() {
    const std::lock_guard lock(mutex_);
    if (closed_ ||
        std::none_of(open_.begin(), open_.end(), [&](std::size_t task) { return IsFree(task); })) {
      return false;
    }
    ++helpers_;
    return true;
  }
  void Leave() {
    const std::lock_guard lock(mutex_);
    --helpers_;
    changed_.notify_all();
  }

  // No result is wanted any more. Returns when all helpers have left.
  void Close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return helpers_ == 0; });
  }
  // For workers: whether their results will be discarded.
  const std::atomic<bool>& closed() const { return closed_; }

 private:
  static constexpr int kOwner = 0;
  using Open = std::vector<std::size_t>::iterator;

  bool IsFree(std::size_t task) const { return !workers_.contains(tasks_[task].place); }
  bool IsOf(int worker, std::size_t task) const {
    const auto known = workers_.find(tasks_[task].place);
    return known != workers_.end() && known->second == worker;
  }

  // First what remains of its cases, then the case with the longest task, so that no worker waits
  // for that one at the end.
  Open NextFor(int helper) {
    const auto own = std::find_if(open_.begin(), open_.end(),
                                  [&](std::size_t task) { return IsOf(helper, task); });
    if (own != open_.end()) return own;
    Open longest = open_.end();
    for (auto task = open_.begin(); task != open_.end(); ++task) {
      if (IsFree(*task) &&
          (longest == open_.end() || tasks_[*task].weight > tasks_[*longest].weight)) {
        longest = task;
      }
    }
    return longest == open_.end() ? longest : FirstOf(tasks_[*longest].place);
  }
  Open FirstOf(std::uint32_t place) {
    return std::find_if(open_.begin(), open_.end(),
                        [&](std::size_t task) { return tasks_[task].place == place; });
  }

  template <class Execute>
  void ExecuteOne(int worker, Open which, std::unique_lock<std::mutex>& lock,
                  const Execute& execute) {
    const std::size_t index = *which, list = list_;
    open_.erase(which);
    const Task task = tasks_[index];
    workers_.emplace(task.place, worker);
    lock.unlock();
    Result result = execute(task);
    lock.lock();
    if (list == list_) results_[index] = std::move(result);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task> tasks_;
  std::vector<std::optional<Result>> results_;
  std::vector<std::size_t> open_;         // that no worker has begun, in order
  std::map<std::uint32_t, int> workers_;  // by case: who executes its windows, in all lists
  std::size_t list_ = 0;                  // how many lists there were
  int helpers_ = 0;
  std::atomic<bool> closed_{false};
};

}  // namespace allranks::judge
