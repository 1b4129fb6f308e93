// Whether something hangs, told from having to wait for the processor: it hangs when for long it
// has used next to no CPU time. On a machine that is busy with other work it still gets some.
#pragma once

#include <chrono>

namespace allranks::judge {

class Idleness {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Idleness(Clock::time_point now = Clock::now()) : since_(now) {}

  // How long less than a hundredth of the time has been used; `cpu_seconds` is what has been used
  // altogether.
  Clock::duration For(Clock::time_point now, double cpu_seconds) {
    const double wall = std::chrono::duration<double>(now - since_).count();
    if (cpu_seconds - used_ > wall * kShare) {
      since_ = now;
      used_ = cpu_seconds;
    }
    return now - since_;
  }
  Clock::time_point since() const { return since_; }

 private:
  static constexpr double kShare = 0.01;

  Clock::time_point since_;
  double used_ = 0;
};

}  // namespace allranks::judge
