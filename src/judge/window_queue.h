// The windows of a session, for whoever executes them.
//
// Executing a window is pure: what it shows follows from world, case, window and seed alone. So
// windows may be executed in any order and by several threads, each with a session of its own,
// while what they show is accepted in the order of the list, by the owner. Whatever is executed
// beyond the last one that is accepted is discarded. The owner executes in this order, too, so that
// what is wrong shows early; helpers begin with what takes longest, lest all wait for it in the
// end.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace allranks::judge {

// A task has a `weight`: how long it takes, compared with others.
template <class Task, class Result>
class WindowQueue {
 public:
  // Replaces the list; nobody is executing anything of the old one that is still wanted.
  void Fill(std::vector<Task> tasks) {
    const std::lock_guard lock(mutex_);
    ++list_;
    tasks_ = std::move(tasks);
    results_.assign(tasks_.size(), std::nullopt);
    open_.resize(tasks_.size());
    std::iota(open_.begin(), open_.end(), std::size_t{0});
    changed_.notify_all();
  }

  // The owner's: the result of the task at `index`, which he asks for in order. He executes what
  // nobody else has begun, this one or a later one.
  template <class Execute>
  Result Obtain(std::size_t index, const Execute& execute) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (results_[index]) return *std::exchange(results_[index], std::nullopt);
      if (open_.empty()) {
        changed_.wait(lock);
      } else {
        ExecuteOne(open_.begin(), lock, execute);
      }
    }
  }

  // A helper's: executes tasks until the queue is closed.
  template <class Execute>
  void Help(const Execute& execute) {
    std::unique_lock lock(mutex_);
    while (!closed_) {
      if (open_.empty()) {
        changed_.wait(lock);
      } else {
        const auto lighter = [&](std::size_t a, std::size_t b) {
          return tasks_[a].weight < tasks_[b].weight;
        };
        ExecuteOne(std::max_element(open_.begin(), open_.end(), lighter), lock, execute);
      }
    }
  }

  // A helper comes, unless nothing is left for it to do. A second list follows the first.
  bool Enter() {
    const std::lock_guard lock(mutex_);
    if (closed_ || (open_.empty() && list_ > 1)) return false;
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
  // For those who execute: what they do will be discarded.
  const std::atomic<bool>& closed() const { return closed_; }

 private:
  template <class Execute>
  void ExecuteOne(std::vector<std::size_t>::iterator which, std::unique_lock<std::mutex>& lock,
                  const Execute& execute) {
    const std::size_t index = *which, list = list_;
    open_.erase(which);
    const Task task = tasks_[index];
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
  std::vector<std::size_t> open_;  // that nobody has begun, in order
  std::size_t list_ = 0;           // how many lists there were
  int helpers_ = 0;
  std::atomic<bool> closed_{false};
};

}  // namespace allranks::judge
