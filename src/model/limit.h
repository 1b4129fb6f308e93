// How many requests are under way at once, learned from the provider: additive increase,
// multiplicative decrease, as TCP does it. Nobody is told a provider's limits in a form that holds
// for every account; 429 is what all of them say.
//
// One limit per endpoint and model in this process. It starts low, grows by one with each reply
// until it first meets resistance and by one per round of replies after that, and halves when the
// provider says that it is too much: once per round, because all that were under way then say the
// same. A time that the provider names holds for everybody. Who comes first goes first.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "base/stop.h"

namespace allranks::model {

class Limit {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr double kStart = 4;

  explicit Limit(int most);

  // A place, until Leave(). False: the stop was requested.
  bool Enter(const Stop& stop, Clock::time_point* entered);

  enum class How {
    kReply,    // a whole reply
    kTooMuch,  // 429, 503, 529
    kElse,     // says nothing about the load
  };
  // Nobody enters before `not_before`. Returns the limit, for those who show it.
  int Leave(Clock::time_point entered, How how, Clock::time_point not_before = {});

  int limit() const;
  std::size_t waiting() const;  // in Enter()
  void AllowAtLeast(int most);

 private:
  bool MayEnter(std::uint64_t who, Clock::time_point now) const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int most_;
  double limit_;
  bool met_resistance_ = false;
  int inside_ = 0;
  std::uint64_t next_ = 0;
  std::list<std::uint64_t> queue_;
  Clock::time_point not_before_;
  Clock::time_point lowered_;  // who entered before is of an earlier round
};

// The same one for the same endpoint and model; `most` is the largest that anyone asked for.
std::shared_ptr<Limit> LimitFor(const std::string& endpoint, const std::string& model, int most);

}  // namespace allranks::model
