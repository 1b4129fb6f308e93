// A remedy where there is no chain: another thread waits for a flag, and the one that makes the
// access does not wait for that thread. Part of RemedySearch.
#include <fmt/format.h>

#include <algorithm>

#include "node/check/checker.h"
#include "node/check/remedy.h"

namespace allranks::node::check {

namespace {

bool OneThread(const LaunchInfo& info) { return info.block.x * info.block.y * info.block.z == 1; }

}  // namespace

// Of either access: the one that comes first may be the one that has not waited.
bool RemedySearch::TellLoneWait(Finding* finding) const {
  return LoneWait(l_, later_lane_, later_tick_, finding) ||
         LoneWait(e_, stamp_.lane, stamp_.tick, finding) || LoneBlock(l_, finding) ||
         LoneBlock(e_, finding) || UnseenWait(l_, later_lane_, finding) ||
         UnseenWait(e_, stamp_.lane, finding);
}

// The access came before the other thread began to wait, so only the text shows the wait: a strong
// load in a loop in front of the access, with no barrier between them, that this thread does not
// execute.
bool RemedySearch::UnseenWait(const Entry& at, std::uint32_t lane, Finding* finding) const {
  if (at.warp >= kFirstCopyWarp || !IsThread(at) || OneThread(*checker_.agents_[at.agent].info))
    return false;
  const Code& code = CodeOf(at.agent);
  if (code.lines[at.pc].line == 0) return false;
  std::uint32_t wait = kNoPc;
  for (const SpinCode& spin : code.spins) {
    for (std::uint32_t pc = spin.head; pc < spin.branch && pc < code.ops.size(); ++pc) {
      if (code.ops[pc].kind != OpKind::kMemory) continue;
      const MemoryOp& op = code.memory[code.ops[pc].aux];
      if (op.kind != MemoryOpKind::kLoad || !op.Strong() || op.count > 1 ||
          op.space == ptx::Space::kShared || !Before(code, pc, at.pc)) {
        continue;
      }
      if (wait == kNoPc || Before(code, wait, pc)) wait = pc;
    }
  }
  if (wait == kNoPc) return false;
  for (std::uint32_t pc = 0; pc < code.ops.size(); ++pc) {
    if (code.ops[pc].kind == OpKind::kBarrier && Before(code, wait, pc) && Before(code, pc, at.pc))
      return false;
  }
  if (const Trail* trail = TrailOf(at.agent)) {
    for (const Event& event : trail->events()) {
      if (event.kind == Event::Kind::kRead && event.pc == wait && event.warp == at.warp &&
          (event.lanes >> lane & 1) != 0) {
        return false;
      }
    }
  }
  const bool grid = checker_.agents_[at.agent].info->cooperative;
  SayLoneWait(code, wait, at.pc, grid ? Edit::By::kGrid : Edit::By::kBlock, finding);
  return true;
}

void RemedySearch::SayLoneWait(const Code& code, std::uint32_t wait, std::uint32_t access,
                               Edit::By by, Finding* finding) const {
  struct Words {
    const char *who, *whom, *barrier, *all, *text;
  };
  const Words words =
      by == Edit::By::kGrid   ? Words{"block of the grid", "block", "grid.sync()", "threads",
                                    "cooperative_groups::this_grid().sync();"}
      : by == Edit::By::kWarp ? Words{"thread of the warp", "thread", "__syncwarp()",
                                      "threads of the warp", "__syncwarp();"}
                              : Words{"thread of the block", "thread", "__syncthreads()",
                                      "threads of the block", "__syncthreads();"};
  const std::string place = PlaceOf(code, access);
  finding->missing = fmt::format(
      "another {} waits for a flag ({}, {}), and the access at {} does not wait for that {}",
      words.who, PlaceOf(code, wait), code.forms[wait], place, words.whom);
  finding->advice =
      fmt::format("put {} after the wait at {} and before {}, where all {} execute it",
                  words.barrier, PlaceOf(code, wait), place, words.all);
  // Where the wait is: it may be in a function that is called several times.
  AddEdit(EditAt(code, wait, Edit::Action::kInsertAfter, by, words.text), finding);
}

// The same of blocks of a grid that can meet.
bool RemedySearch::LoneBlock(const Entry& at, Finding* finding) const {
  const auto& info = checker_.agents_[at.agent].info;
  if (!info->cooperative || at.warp >= kFirstCopyWarp) return false;
  // What its own block waits for as well is no lone wait: the grid's own barrier, for one.
  const auto reads = [&](std::uint32_t pc) {
    const auto& own = EventsOf(at.agent);
    return std::any_of(own.begin(), own.end(), [&](const Event& event) {
      return event.kind == Event::Kind::kRead && event.pc == pc;
    });
  };
  for (const Agent agent : checker_.trails_) {
    if (agent == at.agent || checker_.agents_[agent].info != info) continue;
    for (const Event& read : TrailOf(agent)->events()) {
      if (read.kind != Event::Kind::kRead || !Before(*info->code, read.pc, at.pc) ||
          !InWait(*info->code, read.pc) || reads(read.pc)) {
        continue;
      }
      SayLoneWait(*info->code, read.pc, at.pc, Edit::By::kGrid, finding);
      return true;
    }
  }
  return false;
}

bool RemedySearch::LoneWait(const Entry& at, std::uint32_t lane, Tick tick,
                            Finding* finding) const {
  const Trail* trail = TrailOf(at.agent);
  if (trail == nullptr || at.warp >= kMbarrierCopies) return false;
  const auto own = static_cast<std::uint16_t>(at.warp < kFirstCopyWarp ? at.warp : at.warp % 64);
  const auto& events = trail->events();
  // Each thread may wait for a flag of its own.
  const auto waits = [&](std::uint32_t pc) {
    return std::any_of(events.begin(), events.end(), [&](const Event& event) {
      return event.kind == Event::Kind::kRead && event.pc == pc && event.warp == own &&
             (event.lanes >> lane & 1) != 0;
    });
  };
  for (auto read = events.rbegin(); read != events.rend(); ++read) {
    if (read->kind != Event::Kind::kRead || !Before(CodeOf(at.agent), read->pc, at.pc) ||
        !InWait(CodeOf(at.agent), read->pc) || waits(read->pc)) {
      continue;
    }
    const Tick first = std::min(read->tick, tick), last = std::max(read->tick, tick);
    const bool warp = read->warp == own;
    const bool met = std::any_of(events.begin(), events.end(), [&](const Event& event) {
      return event.kind == Event::Kind::kBarrier && event.tick >= first && event.tick < last;
    });
    if (met || (warp && trail->Met(read->moment, ~std::uint64_t{0}, read->warp, own))) continue;
    SayLoneWait(CodeOf(at.agent), read->pc, at.pc, warp ? Edit::By::kWarp : Edit::By::kBlock,
                finding);
    return true;
  }
  return false;
}

}  // namespace allranks::node::check
