// Remedies: what would create the order that a finding misses.
//
// Between the two accesses of a race there is mostly a chain that was meant to order them: the
// earlier thread's block stores a flag behind its access, the later thread's block reads it before
// its own, perhaps by way of other blocks. Each link can fail in a few ways: the storing thread
// does not know of the access (a barrier is missing), the store does not release it (no release, a
// fence on the wrong side or of another thread), scopes or sizes do not fit, the load does not
// acquire it, or the acquire does not reach the thread of the later access (a barrier is missing,
// or the fence comes behind it). All chains that the trails (trail.h) show are tried; the one with
// the fewest faults tells what to change. Who has no such chain lacks a barrier, an event, or a
// flag.
#include "node/check/remedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "node/check/checker.h"

namespace allranks::node::check {
namespace {

constexpr int kMostHops = 4;
constexpr std::size_t kMostReads = 24;  // looked at of one block

}  // namespace

const char* ScopeName(Scope scope) {
  static constexpr const char* kNames[] = {"cta", "cluster", "gpu", "sys"};
  return kNames[static_cast<int>(scope)];
}

const char* FenceName(Scope scope) {
  return scope == Scope::kSys   ? "__threadfence_system()"
         : scope == Scope::kCta ? "__threadfence_block()"
                                : "__threadfence()";
}

std::string PlaceOf(const Code& code, std::uint32_t pc) {
  const SourceLine& line = code.lines[pc];
  if (line.line == 0) return code.forms[pc];
  std::string text = fmt::format("{}:{}", line.file, line.line);
  if (!line.inlined_at.empty()) text += fmt::format(" (inlined at {})", line.inlined_at);
  return text;
}

bool Before(const Code& code, std::uint32_t a, std::uint32_t b) {
  // From the kernel inwards: a function that is called once may have both.
  const SourceLine &one = code.lines[a], &other = code.lines[b];
  for (std::size_t depth = 0;; ++depth) {
    const auto line = [&](const SourceLine& at) {
      return depth < at.calls.size() ? at.calls[at.calls.size() - 1 - depth].line : at.line;
    };
    if (line(one) != line(other)) return line(one) < line(other);
    if (depth >= one.calls.size() || depth >= other.calls.size() ||
        one.calls[one.calls.size() - 1 - depth].callee !=
            other.calls[other.calls.size() - 1 - depth].callee) {
      return a < b;
    }
  }
}

bool SameStatement(const Code& code, std::uint32_t a, std::uint32_t b) {
  const SourceLine &one = code.lines[a], &other = code.lines[b];
  return a == b || (one.line != 0 && one.line == other.line && one.file == other.file &&
                    one.inlined_at == other.inlined_at && code.forms[a] == code.forms[b]);
}

bool InWait(const Code& code, std::uint32_t pc) {
  // Part of a library's barrier, which has a barrier of the block as well.
  const SourceLine& line = code.lines[pc];
  for (std::uint32_t other = 0; line.line != 0 && other < code.ops.size(); ++other) {
    if (code.ops[other].kind == OpKind::kBarrier && code.lines[other].line == line.line &&
        code.lines[other].file == line.file && code.lines[other].inlined_at == line.inlined_at) {
      return false;
    }
  }
  return std::any_of(code.spins.begin(), code.spins.end(),
                     [&](const SpinCode& spin) { return spin.head <= pc && pc <= spin.branch; });
}

RemedySearch::RemedySearch(const Checker& checker, const Entry& earlier, std::uint32_t lane,
                           const Entry& later, std::uint32_t later_lane, Tick later_tick,
                           std::uint64_t offset)
    : checker_(checker),
      e_(earlier),
      l_(later),
      later_tick_(later_tick),
      stamp_{earlier.agent, earlier.tick, earlier.warp, static_cast<std::uint8_t>(lane)},
      later_lane_(later_lane),
      offset_(offset) {}

const Trail* RemedySearch::TrailOf(Agent agent) const {
  return agent != 0 ? checker_.agents_[agent].trail.get() : nullptr;
}

bool RemedySearch::IsBlock(Agent agent) const {
  return checker_.agents_[agent].info->code != nullptr;
}

bool RemedySearch::EndsBefore(Agent agent) const {
  const auto& start = checker_.agents_[l_.agent].start;
  return IsThread(l_) ? start != nullptr && start->Over(agent, checker_.places_) : true;
}

const Code& RemedySearch::CodeOf(Agent agent) const { return *checker_.agents_[agent].info->code; }

Scope RemedySearch::Need(Agent a, Agent b) const {
  return checker_.positions_[a].Common(checker_.positions_[b]);
}

bool RemedySearch::Known(Agent of, const KnownRef& own, const ClockRef& others) const {
  const std::uint32_t bit = 1u << stamp_.lane;
  if (of == stamp_.agent && LanesOf(own, stamp_.warp, bit, stamp_.tick) != 0) return true;
  if (others == nullptr) return false;
  return others->Over(stamp_.agent, checker_.places_) ||
         LanesOf(others->Of(stamp_.agent), stamp_.warp, bit, stamp_.tick) != 0;
}

bool RemedySearch::SameThread(const Event& event, Agent agent) const {
  return agent == stamp_.agent && event.warp == stamp_.warp &&
         (event.lanes >> stamp_.lane & 1) != 0;
}

// The last fence of a thread in between; null: none.
const Event* RemedySearch::FenceOf(Agent agent, const Event& of, std::uint64_t since,
                                   std::uint64_t until, Scope scope, bool releases) const {
  const Trail* trail = TrailOf(agent);
  if (trail == nullptr) return nullptr;
  const Event* found = nullptr;
  for (const Event& event : trail->events()) {
    if (event.kind != Event::Kind::kFence || event.warp != of.warp ||
        (event.lanes & of.lanes) == 0 || event.moment <= since || event.moment >= until ||
        event.scope < scope || !(releases ? event.releases : event.acquires)) {
      continue;
    }
    if (releases || found == nullptr) found = &event;
  }
  return found;
}

// The write comes before the access, in its thread or behind a barrier or in the text.
bool RemedySearch::Early(const Event& write, Agent agent) const {
  if (agent != stamp_.agent) return false;
  if (SameThread(write, agent)) return write.tick < stamp_.tick;
  if (Known(agent, write.own, write.others)) return false;
  if (stamp_.warp >= kFirstCopyWarp) return write.tick < stamp_.tick;
  const Trail* trail = TrailOf(agent);
  for (const Event& event : trail->events()) {
    if (event.kind == Event::Kind::kBarrier && event.moment > write.moment &&
        event.tick < stamp_.tick) {
      return true;
    }
  }
  // A barrier stands between the two: in the same round the storing thread would know the access.
  const Code& code = CodeOf(agent);
  const std::vector<std::uint32_t>& later = BarriersAfter();
  return std::any_of(later.begin(), later.end(),
                     [&](std::uint32_t pc) { return Before(code, pc, write.pc); }) ||
         Before(code, write.pc, e_.pc);
}

const std::vector<std::uint32_t>& RemedySearch::BarriersAfter() const {
  if (barriers_) return *barriers_;
  const Code& code = CodeOf(stamp_.agent);
  barriers_.emplace();
  for (std::uint32_t pc = 0; pc < code.ops.size(); ++pc)
    if (code.ops[pc].kind == OpKind::kBarrier && Before(code, e_.pc, pc)) barriers_->push_back(pc);
  return *barriers_;
}

// The instructions that race are no flag: an atomic that adds to the data, a vector of which one
// element is polled. The word that races may be one, if a thread has read it and then resets it.
bool RemedySearch::IsData(const Link& link) const {
  if (IsThread(l_) && &CodeOf(link.reader) == &CodeOf(l_.agent) &&
      SameStatement(CodeOf(l_.agent), link.read->pc, l_.pc)) {
    return true;
  }
  if (!IsThread(e_) || &CodeOf(link.writer) != &CodeOf(e_.agent) ||
      !SameStatement(CodeOf(e_.agent), link.write->pc, e_.pc)) {
    return false;
  }
  return link.write->vector || !l_.write() ||
         (offset_ != kNoOffset && link.write->offset != offset_);
}

// Between the flag's store and the access the block waits for what its peers store by the same
// instruction: if all stored it after the access, all would wait for ever.
bool RemedySearch::PeersAnswer(const Link& link) const {
  const Code& code = CodeOf(link.writer);
  const auto between = [&](std::uint32_t pc) {
    return Before(code, link.write->pc, pc) && Before(code, pc, e_.pc);
  };
  if (&CodeOf(link.reader) == &code && between(link.read->pc)) return true;
  const auto& events = EventsOf(link.writer);
  return std::any_of(events.begin(), events.end(), [&](const Event& read) {
    return read.kind == Event::Kind::kRead && read.writer.agent != 0 &&
           (read.writer.agent != link.writer || link.write->atomic) && IsBlock(read.writer.agent) &&
           &CodeOf(read.writer.agent) == &code &&
           SameStatement(code, read.write_pc, link.write->pc) && between(read.pc);
  });
}

// The thread's first store of the flag after the access: if it is a release, so are those after it
// (PTX ISA, release patterns).
const Event* RemedySearch::FirstStore(const Event& write) const {
  for (const Event& event : EventsOf(stamp_.agent)) {
    if (event.kind == Event::Kind::kWrite && event.object == write.object &&
        event.offset == write.offset && event.moment < write.moment &&
        SameThread(event, stamp_.agent) && event.tick >= stamp_.tick &&
        Before(CodeOf(stamp_.agent), e_.pc, event.pc)) {
      return &event;
    }
  }
  return &write;
}

// The store that the remedy changes stands before the access: that of the next round, which does
// not follow the last access.
bool RemedySearch::ARoundLater(const Chain& chain) const {
  const Link& first = chain.links.front();
  if (first.writer != stamp_.agent || !IsThread(e_)) return false;
  return std::any_of(chain.faults.begin(), chain.faults.end(), [&](const Fault& fault) {
    return fault.agent == first.writer && fault.pc == first.write->pc &&
           fault.fix != Fault::Fix::kScope && fault.fix != Fault::Fix::kWidth &&
           Before(CodeOf(first.writer), fault.pc, e_.pc);
  });
}

void RemedySearch::Release(Agent agent, const Event& w, Agent reader, bool known_before,
                           std::uint64_t since, Chain* chain) const {
  const Scope need = Need(agent, reader);
  Scope said = Scope::kCta;
  bool says = false;
  const auto say = [&](Scope scope) {
    said = says ? std::max(said, scope) : scope;
    says = true;
  };
  const bool same = SameThread(w, agent);
  const bool knows = known_before || same || Known(agent, w.own, w.others);
  if (knows && w.releases) say(w.scope);
  if (known_before) {
    if (const Event* fence = FenceOf(agent, w, since, w.moment, Scope::kCta, true))
      say(fence->scope);
  } else {
    for (const auto& fence : w.fences) {
      if ((same && stamp_.tick <= fence->tick) || Known(agent, fence->knew.own, fence->knew.others))
        say(fence->scope);
    }
  }
  if (!knows) {
    const bool copy = stamp_.warp >= kFirstCopyWarp;
    const auto warp = static_cast<std::uint16_t>(copy ? stamp_.warp % 64 : stamp_.warp);
    if (copy) chain->faults.push_back({Fault::Fix::kCopyWait, agent, w.pc, need});
    // In front of the thread's own fence, if it has one since it last met the others.
    const Event* anchor = nullptr;
    if (const Event* fence = FenceOf(agent, w, 0, w.moment, need, true);
        fence != nullptr && !TrailOf(agent)->Met(fence->moment, w.moment, w.warp, warp) &&
        Before(CodeOf(agent), e_.pc, fence->pc) && Before(CodeOf(agent), fence->pc, w.pc)) {
      anchor = fence;
    }
    const bool met = copy && warp == w.warp;
    if (agent != stamp_.agent) {
      Fault fault{Fault::Fix::kBarrierBefore, agent, w.pc, need};
      fault.by = Edit::By::kGrid;
      chain->faults.push_back(fault);
    } else if (!met) {
      Fault fault{Fault::Fix::kBarrierBefore, agent, anchor != nullptr ? anchor->pc : w.pc, need};
      fault.by = warp == w.warp ? Edit::By::kWarp : Edit::By::kBlock;
      chain->faults.push_back(fault);
    }
    if (anchor == nullptr && !(w.releases && w.scope >= need))
      chain->faults.push_back(
          {w.releases ? Fault::Fix::kScope : Fault::Fix::kFenceBefore, agent, w.pc, need, w.scope});
    return;
  }
  if (says && said >= need) return;
  if (w.releases && w.scope < need) return;  // its scope is at fault, which the link tells
  if (says) {                                // a fence of too narrow a scope
    if (const Event* fence = FenceOf(agent, w, since, w.moment, Scope::kCta, true)) {
      chain->faults.push_back({Fault::Fix::kScope, agent, fence->pc, need, fence->scope});
      return;
    }
  }
  const Event& first = same ? *FirstStore(w) : w;
  chain->faults.push_back({Fault::Fix::kFenceBefore, agent, first.pc, need});
}

// From a read to what its block does with it: a write of another thread, or the later access.
void RemedySearch::Acquire(Agent agent, const Event& r, Scope need, std::uint16_t warp,
                           std::uint32_t lanes, std::uint32_t pc, std::uint64_t until,
                           Chain* chain) const {
  const bool same = r.warp == warp && (r.lanes & lanes) != 0;
  const Event* fence = FenceOf(agent, r, r.moment, until, need, false);
  const bool acquires = r.acquires && r.scope >= need;
  const Trail& trail = *TrailOf(agent);
  const bool met = same || trail.Met(r.moment, until, r.warp, warp);
  const bool reaches = same ? acquires || fence != nullptr
                            : (acquires && met) || (fence != nullptr &&
                                                    trail.Met(fence->moment, until, r.warp, warp));
  if (reaches) return;
  if (!acquires && r.acquires) {
    // Its scope is at fault, which the link tells.
  } else if (!acquires && (fence == nullptr || met)) {
    const Event* narrow = FenceOf(agent, r, r.moment, until, Scope::kCta, false);
    if (fence == nullptr && narrow != nullptr &&
        (same || trail.Met(narrow->moment, until, r.warp, warp))) {
      chain->faults.push_back({Fault::Fix::kScope, agent, narrow->pc, need, narrow->scope});
    } else {
      chain->faults.push_back({Fault::Fix::kFenceAfter, agent, r.pc, need});
    }
  }
  if (!met) {
    Fault fault{Fault::Fix::kBarrierBefore, agent, pc, need};
    fault.by = r.warp == warp ? Edit::By::kWarp : Edit::By::kBlock;
    fault.behind = r.pc;
    chain->faults.push_back(fault);
    if (!Before(CodeOf(agent), r.pc, pc))
      chain->cost += 15;  // read behind the access, as the text has it
  }
}

void RemedySearch::Judge(std::vector<Link> links) {
  Chain chain;
  std::reverse(links.begin(), links.end());
  chain.links = links;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& link = links[i];
    const Scope need = Need(link.writer, link.reader);
    Release(link.writer, *link.write, link.reader, i > 0, i > 0 ? links[i - 1].read->moment : 0,
            &chain);
    if (link.write->scope < need)
      chain.faults.push_back(
          {Fault::Fix::kScope, link.writer, link.write->pc, need, link.write->scope});
    if (link.read->scope < need)
      chain.faults.push_back(
          {Fault::Fix::kScope, link.reader, link.read->pc, need, link.read->scope});
    if (link.write->element != link.read->element)
      chain.faults.push_back({Fault::Fix::kWidth, link.writer, link.write->pc, need});
    const bool last = i + 1 == links.size();
    if (last && EndsBefore(link.reader)) {  // its end tells of all its threads
      Acquire(link.reader, *link.read, need, link.read->warp, link.read->lanes, link.read->pc,
              ~std::uint64_t{0}, &chain);
    } else if (last && link.reader != l_.agent) {
      Fault fault{Fault::Fix::kBarrierBefore, l_.agent, l_.pc, need};
      fault.by = Edit::By::kGrid;
      fault.behind = link.read->pc;
      chain.faults.push_back(fault);
    } else if (last) {
      Acquire(link.reader, *link.read, need, l_.warp < kFirstCopyWarp ? l_.warp : l_.warp % 64,
              l_.warp < kFirstCopyWarp ? 1u << later_lane_ : ~0u, l_.pc, ~std::uint64_t{0}, &chain);
    } else {
      const Event& next = *links[i + 1].write;
      Acquire(link.reader, *link.read, need, next.warp, next.lanes, next.pc, next.moment, &chain);
    }
  }
  if (chain.faults.empty()) return;
  chain.cost += static_cast<int>(10 * chain.faults.size() + links.size());
  for (const Link& link : links) chain.cost += link.read->vector ? 3 : 0;
  chain.late = ARoundLater(chain);
  if (chain.late) chain.cost += 15;
  if (best_.links.empty() || chain.cost < best_.cost) best_ = std::move(chain);
}

const Event* RemedySearch::WriteOf(Agent agent, const Event& read, bool before) const {
  const Trail* trail = TrailOf(agent);
  if (trail == nullptr) return nullptr;
  const Event* found = nullptr;
  for (const Event& event : trail->events()) {
    if (event.kind != Event::Kind::kWrite) continue;
    // Lanes of one instruction store to different places: the first one's is known.
    const bool it = event.number == read.number ||
                    (event.pc == read.write_pc && event.tick == read.writer.tick &&
                     agent == read.writer.agent && event.warp == read.writer.warp &&
                     (event.lanes >> read.writer.lane & 1) != 0);
    if (it) return &event;
    if (event.number > read.number || !before || event.object != read.object) continue;
    if (event.offset != read.offset && std::popcount(event.lanes) == 1) continue;
    if (Early(event, agent)) continue;
    found = &event;
  }
  return found;
}

void RemedySearch::Back(Agent agent, std::uint64_t until, std::vector<Link>& links) {
  const Trail* trail = TrailOf(agent);
  if (trail == nullptr || links.size() >= kMostHops) return;
  std::vector<std::tuple<Agent, std::uint32_t, bool>> seen;
  std::size_t looked = 0;
  const auto& events = trail->events();
  for (auto read = events.rbegin(); read != events.rend() && looked < kMostReads; ++read) {
    if (read->kind != Event::Kind::kRead || read->writer.agent == 0 || read->moment >= until)
      continue;
    // Each thread may wait for a flag of its own.
    const bool own = agent == l_.agent && read->warp == l_.warp && (read->lanes >> later_lane_ & 1);
    const auto key = std::make_tuple(read->writer.agent, read->pc, own);
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
    seen.push_back(key);
    ++looked;
    const auto follow = [&](Agent writer, const Event* write) {
      if (write == nullptr || writer == agent) {
        // Within a block only what one thread says to another.
        if (write == nullptr || agent != stamp_.agent || !SameThread(*write, writer) ||
            agent != l_.agent || (read->lanes >> later_lane_ & 1) == 0 || read->warp != l_.warp) {
          return;
        }
      }
      if (std::any_of(links.begin(), links.end(),
                      [&](const Link& link) { return link.reader == writer; }) &&
          writer != stamp_.agent) {
        return;
      }
      const Link link{writer, write, agent, &*read};
      if (IsData(link)) return;
      links.push_back(link);
      const auto& info = checker_.agents_[writer].info;
      const bool grid = info->cooperative && info == checker_.agents_[stamp_.agent].info;
      if (writer == stamp_.agent || grid || Known(writer, write->own, write->others)) {
        if (!Early(*write, writer)) {
          Judge(links);
        } else if (early_.write == nullptr && writer == stamp_.agent &&
                   Before(CodeOf(writer), write->pc, e_.pc) &&  // else of another round
                   InWait(CodeOf(agent), read->pc) && !PeersAnswer(link)) {
          early_ = links.back();
        }
      } else {
        Back(writer, write->moment, links);
      }
      links.pop_back();
    };
    follow(read->writer.agent, WriteOf(read->writer.agent, *read, false));
    if (read->atomic && read->writer.agent != stamp_.agent)
      follow(stamp_.agent, WriteOf(stamp_.agent, *read, true));
    if (read->atomic && read->writer.agent == stamp_.agent)
      follow(stamp_.agent, WriteOf(stamp_.agent, *read, true));
  }
}

bool RemedySearch::Run() {
  std::vector<Link> links;
  Back(l_.agent, ~std::uint64_t{0}, links);
  if (!best_.links.empty()) return true;
  // Another block has waited: of the grid, or of a kernel before it.
  const auto& info = checker_.agents_[l_.agent].info;
  for (auto agent = checker_.trails_.rbegin(); agent != checker_.trails_.rend(); ++agent) {
    const auto& other = checker_.agents_[*agent].info;
    if (*agent == l_.agent || *agent == e_.agent || other->device != info->device) continue;
    if ((info->cooperative && other == info) || EndsBefore(*agent))
      Back(*agent, ~std::uint64_t{0}, links);
  }
  return !best_.links.empty();
}

}  // namespace allranks::node::check
