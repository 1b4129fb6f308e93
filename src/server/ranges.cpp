#include "server/ranges.h"

#include <algorithm>
#include <tuple>

#include "server/trace.h"

namespace allranks::server {

void Ranges::Add(std::map<Name, RangeTotal>& totals, const Open& open, Time at) {
  Name name = open.name;
  if (totals.size() >= kMaxNames && !totals.contains(name)) name = {"", "(further names)"};
  RangeTotal& total = totals[name];
  if (total.calls++ == 0) std::tie(total.domain, total.name) = name;
  const Time length = std::max<Time>(at - open.begin, 0);
  total.total += length;
  total.longest = std::max(total.longest, length);
}

void Ranges::Close(const Open& open, bool pushed, Time at) {
  --open_;
  Add(totals_, open, at);
  if (trace_ != nullptr)
    trace_->OnRange(open.thread, open.name.first, open.name.second, pushed, open.begin,
                    std::max(open.begin, at));
}

void Ranges::Note(Thread thread, const std::vector<wire::RangeEvent>& events, Time now) {
  using Kind = wire::RangeEvent::Kind;
  for (const wire::RangeEvent& event : events) {
    const Time at = std::clamp<Time>(event.at, 0, now);
    switch (event.kind) {
      case Kind::kPush:
        if (open_ >= kMaxOpen) break;
        pushed_[{thread, event.domain}].push_back({{event.domain, event.text}, at, thread});
        ++open_;
        break;
      case Kind::kPop: {
        const auto stack = pushed_.find({thread, event.domain});
        if (stack == pushed_.end()) break;
        Close(stack->second.back(), true, at);
        stack->second.pop_back();
        if (stack->second.empty()) pushed_.erase(stack);
        break;
      }
      case Kind::kStart:
        if (open_ >= kMaxOpen) break;
        if (started_
                .try_emplace({thread.rank, event.id}, Open{{event.domain, event.text}, at, thread})
                .second)
          ++open_;
        break;
      case Kind::kEnd:
        if (const auto found = started_.find({thread.rank, event.id}); found != started_.end()) {
          Close(found->second, false, at);
          started_.erase(found);
        }
        break;
      case Kind::kMark:
        if (trace_ != nullptr) trace_->OnMark(thread, event.domain, event.text, at);
        break;
      case Kind::kNameThread:
      case Kind::kNameStream:
        break;  // the Core knows whose numbers these are
    }
  }
}

void Ranges::ThreadEnded(Thread thread, Time at) {
  for (auto it = pushed_.lower_bound({thread, ""});
       it != pushed_.end() && it->first.first == thread; it = pushed_.erase(it)) {
    for (; !it->second.empty(); it->second.pop_back()) Close(it->second.back(), true, at);
  }
}

void Ranges::ProcessEnded(std::int32_t rank, Time at) {
  for (auto it = started_.lower_bound({rank, 0}); it != started_.end() && it->first.first == rank;
       it = started_.erase(it))
    Close(it->second, false, at);
}

void Ranges::Finish(Time at) {
  while (!pushed_.empty()) ThreadEnded(pushed_.begin()->first.first, at);
  while (!started_.empty()) ProcessEnded(started_.begin()->first.first, at);
}

std::vector<RangeTotal> Ranges::Totals(Time now) const {
  std::map<Name, RangeTotal> totals = totals_;
  for (const auto& [key, stack] : pushed_)
    for (const Open& open : stack) Add(totals, open, now);
  for (const auto& [key, open] : started_) Add(totals, open, now);
  std::vector<RangeTotal> list;
  for (auto& [name, total] : totals) list.push_back(std::move(total));
  // Equal ones by name. Not stable_sort: clang refuses that of libstdc++ 12.
  std::ranges::sort(list, [](const RangeTotal& a, const RangeTotal& b) {
    return std::tie(b.total, a.domain, a.name) < std::tie(a.total, b.domain, b.name);
  });
  return list;
}

}  // namespace allranks::server
