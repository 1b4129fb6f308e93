// See delays.h.
#include "node/state/delays.h"

#include <algorithm>
#include <functional>
#include <string>

#include "base/splitmix.h"

namespace allranks::node {
namespace {

constexpr Time kLeast = Ms(2);          // and at least four times what the launch has taken so far
constexpr Time kBriefLeast = Us(200);   // in judged windows
constexpr Time kFlight = Us(40);        // polls that meanwhile find the old value are executed
constexpr Time kStep = Ns(300);         // between two looks of a compare-and-swap at its word
constexpr Time kWatched = Us(60);       // for which it looks
constexpr std::uint32_t kTimes = 8;     // of one place of a device, at level 4
constexpr Time kBrief = Us(4);          // of a late load, and up to 32 us at later times
constexpr int kMostLates = 512;         // times of what is late every time
constexpr int kMostStops = 16;          // after the first one
constexpr std::uint64_t kOneIn = 8;     // of the times that somebody comes to a place then
constexpr std::uint64_t kLengths = 10;  // of those stops: kLeast halved up to so many times
constexpr std::size_t kMostPlaces = 100'000;

}  // namespace

void Delays::Set(std::uint32_t level, std::uint64_t index, bool brief) {
  *this = {};
  on_ = true;
  level_ = level;
  index_ = index;
  brief_ = brief;
}

Time Delays::At(const Place& place, Time now, Time began) {
  if (!on_) return 0;
  const bool every_time = place.kind <= Kind::kSwap;
  if (over_ && (every_time ? place.kind != always_kind_
                           : level_ < 2 || stops_ >= kMostStops || now < until_)) {
    return 0;
  }
  const std::uint64_t site = place.code == nullptr ? place.pc : SiteOf(*place.code, place.pc);
  const std::uint64_t instruction = Mix(site, static_cast<std::uint64_t>(place.kind));
  const std::uint64_t device = Mix(instruction, static_cast<std::uint64_t>(place.device) + 1);
  const std::uint64_t warp = Mix(Mix(device, place.block), place.warp);
  const auto key_of = [&](std::uint32_t level) {
    return level <= 2 ? instruction : level == 3 ? device : warp;
  };
  const std::uint32_t whose = level_ == 4 ? 1 : level_;  // for all from the time on
  if (over_ && every_time) {
    const bool late = key_of(whose) == always_ && warp != spared_;
    // Whoever waits for luck must have some in the end: old values are limited by themselves.
    if (!late || (place.kind != Kind::kStale && ++lates_ > kMostLates)) return 0;
    return LengthOf(place.kind, now - began);
  }
  if (over_ && always_kind_ == Kind::kLater) {
    // It has just stopped, or this is another load.
    if (place.kind != Kind::kLater || instruction != always_ || warp == spared_) {
      if (place.kind == Kind::kLater && warp == spared_) spared_ = 0;
      return 0;
    }
    spared_ = warp;
    const Time length = ++stops_ == kMostStops ? Least() : kBrief << stops_ / 4;
    until_ = now + length;
    return length;
  }
  if (over_) {
    // By what is the same in every run: keys depend on where the code is in memory.
    const std::uint64_t what = Mix(place.pc, static_cast<std::uint64_t>(place.kind));
    const std::uint64_t drawn = Mix(Mix(index_, what), ++times_[instruction]);
    if (drawn % kOneIn != 0) return 0;
    ++stops_;
    const Time length = Least() >> (drawn >> 8) % kLengths;
    until_ = now + length;
    return length;
  }
  bool here = false;
  for (std::uint32_t level = 1; level <= kPlaceLevels; ++level) {
    if (level_ != 0 && level != level_) continue;
    if (level <= 2 && every_time != (level == 1)) continue;
    std::uint64_t key = key_of(level);
    if (level == 4) {
      std::uint32_t& times = times_[device];
      if (times >= kTimes) continue;
      key = Mix(device, std::uint64_t{1} << 32 | ++times);
    }
    if (seen_[level - 1].size() >= kMostPlaces || !seen_[level - 1].insert(key).second) continue;
    here |= ++counts_[level - 1] == index_ && level == level_;
  }
  if (!here) return 0;
  over_ = true;
  if (every_time) {
    always_kind_ = place.kind;
    always_ = key_of(whose);
  }
  // Somebody must come to the end of its swap for others to see the word change and change back.
  if (place.kind == Kind::kSwap && level_ != 3 && level_ != 5) {
    spared_ = warp;
    return 0;
  }
  Time length = LengthOf(place.kind, now - began);
  // Whoever reads while others write needs to be late by about one of their rounds, in each of
  // them.
  if (level_ == 2 && place.kind == Kind::kLater) {
    always_kind_ = place.kind;
    always_ = instruction;
    spared_ = warp;
    length = kBrief;
  }
  if (!every_time) until_ = now + length;
  return length;
}

std::uint64_t Delays::SiteOf(const Code& code, std::uint32_t pc) {
  std::vector<std::uint64_t>& sites = sites_[&code];
  if (sites.empty()) {
    const auto own = reinterpret_cast<std::uintptr_t>(&code);
    for (std::uint32_t i = 0; i < code.forms.size(); ++i) {
      const SourceLine& line = code.lines[i];
      const std::hash<std::string> hash;
      sites.push_back(line.line == 0 ? Mix(own, i)
                                     : Mix(Mix(own, Mix(hash(line.file),
                                                        static_cast<std::uint64_t>(line.line))),
                                           Mix(hash(line.inlined_at), hash(code.forms[i]))));
    }
  }
  return pc < sites.size() ? sites[pc] : Mix(reinterpret_cast<std::uintptr_t>(&code), pc);
}

Time Delays::Least() const { return brief_ ? kBriefLeast : kLeast; }

Time Delays::LengthOf(Kind kind, Time so_far) const {
  if (kind == Kind::kSwap) return kStep;
  return kind < Kind::kSwap ? kFlight : std::max(Least(), 4 * so_far);
}

void Delays::Watch(const void* path) { watches_[path] = {false, kWatched}; }

Time Delays::Again(const void* path, bool same) {
  const auto it = watches_.find(path);
  if (it == watches_.end()) return 0;
  Watched& watched = it->second;
  watched.changed |= !same;
  watched.left -= kStep;
  if (watched.left > 0 && !(watched.changed && same)) return kStep;
  watches_.erase(it);
  return 0;
}

}  // namespace allranks::node
