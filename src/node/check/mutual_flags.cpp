// A remedy for flags that two threads raise before they look at each other's, as locks without
// atomics do: a store and a later load of another word are ordered by a fence.sc only, in both
// threads. Part of RemedySearch.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "node/check/checker.h"
#include "node/check/remedy.h"

namespace allranks::node::check {

// What one thread does before its access: it stores a flag, and loads that of the other one.
struct RemedySearch::Side {
  Agent agent = 0;
  const Event* store = nullptr;
  const Event* load = nullptr;
  const Event* fence = nullptr;  // between them: a fence.sc of the widest scope, else another
};

bool RemedySearch::TellMutualFlags(Finding* finding) const {
  if (!IsThread(e_) || !IsThread(l_) || e_.warp >= kFirstCopyWarp || l_.warp >= kFirstCopyWarp)
    return false;
  for (const Event& load : EventsOf(l_.agent)) {
    Side mine{l_.agent, nullptr, &load, nullptr};
    if (!IsLoadOf(load, l_, later_lane_)) continue;
    for (const Event& other : EventsOf(e_.agent)) {
      Side his{e_.agent, nullptr, &other, nullptr};
      if (!IsLoadOf(other, e_, stamp_.lane)) continue;
      mine.store = StoreBefore(load, other, l_, later_lane_);
      his.store = StoreBefore(other, load, e_, stamp_.lane);
      if (mine.store == nullptr || his.store == nullptr) continue;
      const Scope need = Need(e_.agent, l_.agent);
      mine.fence = FenceBetween(mine);
      his.fence = FenceBetween(his);
      const auto lacks = [&](const Side& side) {
        return side.fence == nullptr || !side.fence->sequential || side.fence->scope < need;
      };
      if (!lacks(mine) && !lacks(his)) continue;
      finding->missing = fmt::format(
          "each thread stores a flag ({} and {}) and then loads the other's: only a fence.sc "
          "between the two prevents both from reading old values",
          PlaceOf(CodeOf(his.agent), his.store->pc), PlaceOf(CodeOf(mine.agent), mine.store->pc));
      if (lacks(his)) AddScFence(his, need, finding);
      if (lacks(mine)) AddScFence(mine, need, finding);
      return true;
    }
  }
  return false;
}

const std::vector<Event>& RemedySearch::EventsOf(Agent agent) const {
  static const std::vector<Event> kNone;
  const Trail* trail = TrailOf(agent);
  return trail != nullptr ? trail->events() : kNone;
}

// By the thread of the access, in front of it.
bool RemedySearch::IsLoadOf(const Event& event, const Entry& at, std::uint32_t lane) const {
  return event.kind == Event::Kind::kRead && event.object != 0 && event.warp == at.warp &&
         (event.lanes >> lane & 1) != 0 && Before(CodeOf(at.agent), event.pc, at.pc);
}

// The last store of the thread in front of its load, to the word that the other thread loads.
const Event* RemedySearch::StoreBefore(const Event& load, const Event& other, const Entry& at,
                                       std::uint32_t lane) const {
  if (load.object == other.object && load.offset == other.offset) return nullptr;
  const Event* found = nullptr;
  for (const Event& event : EventsOf(at.agent)) {
    if (event.kind == Event::Kind::kWrite && event.object == other.object &&
        event.offset == other.offset && event.warp == at.warp && (event.lanes >> lane & 1) != 0 &&
        Before(CodeOf(at.agent), event.pc, load.pc)) {
      found = &event;
    }
  }
  return found;
}

const Event* RemedySearch::FenceBetween(const Side& side) const {
  const Code& code = CodeOf(side.agent);
  const Event* found = nullptr;
  for (const Event& event : EventsOf(side.agent)) {
    const auto better = [&] {
      return found == nullptr || std::make_pair(found->sequential, found->scope) <
                                     std::make_pair(event.sequential, event.scope);
    };
    if (event.kind == Event::Kind::kFence && event.warp == side.load->warp &&
        (event.lanes & side.load->lanes) != 0 && Before(code, side.store->pc, event.pc) &&
        Before(code, event.pc, side.load->pc) && better()) {
      found = &event;
    }
  }
  return found;
}

void RemedySearch::AddScFence(const Side& side, Scope need, Finding* finding) const {
  const Code& code = CodeOf(side.agent);
  std::string advice;
  Edit edit;
  const bool weaker = side.fence != nullptr && !side.fence->sequential;
  if (weaker && side.fence->scope >= need &&
      code.forms[side.fence->pc].find(".acq_rel") != std::string::npos) {
    advice = fmt::format("use fence.sc instead of {} at {}", code.forms[side.fence->pc],
                         PlaceOf(code, side.fence->pc));
    edit = EditAt(code, side.fence->pc, Edit::Action::kReplace, Edit::By::kThread, "sc");
    edit.from = "acq_rel";
  } else if (side.fence != nullptr && !weaker) {
    advice = fmt::format("use scope .{} instead of .{} at {}", ScopeName(need),
                         ScopeName(side.fence->scope), PlaceOf(code, side.fence->pc));
    edit = EditAt(code, side.fence->pc, Edit::Action::kReplace, Edit::By::kThread, ScopeName(need));
    edit.from = ScopeName(side.fence->scope);
  } else {
    advice = fmt::format("put {} (fence.sc.{}) between the store at {} and the load at {}",
                         FenceName(need), ScopeName(need), PlaceOf(code, side.store->pc),
                         PlaceOf(code, side.load->pc));
    edit = EditAt(code, side.store->pc, Edit::Action::kInsertAfter, Edit::By::kThread,
                  fmt::format("{};", FenceName(need)));
  }
  if (finding->advice.find(advice) != std::string::npos) return;  // both run the same kernel
  finding->advice += (finding->advice.empty() ? "" : "; and ") + advice;
  AddEdit(std::move(edit), finding);
}

}  // namespace allranks::node::check
