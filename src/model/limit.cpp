#include "model/limit.h"

#include <algorithm>
#include <map>
#include <utility>

namespace allranks::model {

Limit::Limit(int most)
    : most_(std::max(1, most)), limit_(std::min<double>(kStart, std::max(1, most))) {}

bool Limit::MayEnter(std::uint64_t who, Clock::time_point now) const {
  return queue_.front() == who && inside_ < static_cast<int>(limit_) && now >= not_before_;
}

bool Limit::Enter(const Stop& stop, Clock::time_point* entered) {
  std::unique_lock lock(mutex_);
  const std::uint64_t who = next_++;
  const auto place = queue_.insert(queue_.end(), who);
  for (;;) {
    const auto now = Clock::now();
    if (stop.requested() || MayEnter(who, now)) break;
    // The Stop cannot wake anybody: it is set by signal handlers. Looked at as often as Stop::Sleep
    // does; the first in line also wakes when the provider's time has come.
    auto until = now + std::chrono::milliseconds(20);
    if (not_before_ > now) until = std::min(until, not_before_);
    changed_.wait_until(lock, until);
  }
  queue_.erase(place);
  changed_.notify_all();
  if (stop.requested()) return false;
  ++inside_;
  *entered = Clock::now();
  return true;
}

int Limit::Leave(Clock::time_point entered, How how, Clock::time_point not_before) {
  const std::lock_guard lock(mutex_);
  --inside_;
  not_before_ = std::max(not_before_, not_before);
  if (how == How::kReply) {
    limit_ = std::min<double>(most_, limit_ + (met_resistance_ ? 1 / limit_ : 1));
  } else if (how == How::kTooMuch && entered >= lowered_) {
    limit_ = std::max(1.0, limit_ / 2);
    met_resistance_ = true;
    lowered_ = Clock::now();
  }
  changed_.notify_all();
  return static_cast<int>(limit_);
}

std::size_t Limit::waiting() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

int Limit::limit() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(limit_);
}

void Limit::AllowAtLeast(int most) {
  const std::lock_guard lock(mutex_);
  most_ = std::max(most_, most);
}

std::shared_ptr<Limit> LimitFor(const std::string& endpoint, const std::string& model, int most) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, std::weak_ptr<Limit>> limits;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Limit>& known = limits[{endpoint, model}];
  std::shared_ptr<Limit> limit = known.lock();
  if (limit)
    limit->AllowAtLeast(most);
  else
    known = limit = std::make_shared<Limit>(most);
  return limit;
}

}  // namespace allranks::model
