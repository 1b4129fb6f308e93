#include "node/check/trail.h"

#include <algorithm>

namespace allranks::node::check {

namespace {

constexpr int kLookedAt = 40;  // of the last events

}  // namespace

bool Trail::Polled(std::uint16_t warp, std::uint32_t lanes, std::uint32_t pc,
                   std::uint64_t number) {
  int looked = 0;
  for (auto event = events_.rbegin(); event != events_.rend() && looked < kLookedAt;
       ++event, ++looked) {
    if (event->kind == Event::Kind::kRead && event->pc == pc && event->warp == warp &&
        event->number == number && (lanes & ~event->lanes) == 0) {
      return true;
    }
  }
  return false;
}

Event* Trail::LastPoll(std::uint16_t warp, std::uint32_t lanes, std::uint32_t pc) {
  int looked = 0;
  for (auto event = events_.rbegin(); event != events_.rend() && looked < kLookedAt;
       ++event, ++looked) {
    if (event->kind == Event::Kind::kRead && event->pc == pc && event->warp == warp &&
        event->writer.agent == 0 && (lanes & ~event->lanes) == 0) {
      return &*event;
    }
  }
  return nullptr;
}

void Trail::Add(Event event) {
  if (events_.size() >= kMost) events_.erase(events_.begin(), events_.begin() + kMost / 4);
  events_.push_back(std::move(event));
}

void Trail::WarpMet(std::uint16_t warp, std::uint32_t /*lanes*/, std::uint64_t moment) {
  if (warp_met_.size() <= warp) warp_met_.resize(std::size_t{warp} + 1);
  warp_met_[warp] = moment;
}

bool Trail::Met(std::uint64_t since, std::uint64_t until, std::uint16_t warp,
                std::uint16_t other) const {
  if (warp == other && warp < warp_met_.size() && warp_met_[warp] > since &&
      warp_met_[warp] < until) {
    return true;
  }
  const std::uint64_t both =
      (warp < 64 ? std::uint64_t{1} << warp : 0) | (other < 64 ? std::uint64_t{1} << other : 0);
  return std::any_of(events_.begin(), events_.end(), [&](const Event& event) {
    return event.kind == Event::Kind::kBarrier && event.moment > since && event.moment < until &&
           (event.warps & both) == both;
  });
}

}  // namespace allranks::node::check
