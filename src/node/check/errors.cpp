// Barriers, warp-wide operations, mbarriers and spins; see errors.h.
#include "node/check/errors.h"
#include "node/check/checker.h"
#include "node/check/remedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "node/code/lanes.h"
#include "node/state/lane_values.h"
#include "node/state/mbarrier_word.h"
#include "node/state/spin_state.h"

namespace allranks::node::check {
namespace {

constexpr std::size_t kMaxPolls = 1 << 14;

const Code& CodeOf(const Path& path) { return *path.warp->cta->launch->code; }

std::uint32_t RoundUp(std::uint32_t threads) { return (threads + kLanes - 1) / kLanes * kLanes; }

std::uint32_t ThreadsOf(const Cta& cta) {
  return RoundUp(static_cast<std::uint32_t>(cta.launch->request.block.Count()));
}

bool AtBarrier(const Path& path) {
  const Code& code = CodeOf(path);
  return path.state == Path::State::kBarrier && code.ops[path.pc].kind == OpKind::kBarrier;
}

bool AtClusterBarrier(const Path& path) {
  const Code& code = CodeOf(path);
  const Op& op = code.ops[path.pc];
  return path.state == Path::State::kBarrier && op.kind == OpKind::kAsync &&
         code.async[op.aux].kind == AsyncOpKind::kClusterWait;
}

// The members of the warp-wide operation that a path waits in, and which operation it is.
std::uint32_t MembersOf(const Path& path, int* what) {
  const Code& code = CodeOf(path);
  const Op& op = code.ops[path.pc];
  if (op.kind == OpKind::kMatrix) {
    *what = -1 - static_cast<int>(path.pc);  // the whole warp, at one place
    return path.warp->live;
  }
  const WarpOp& warp_op = code.warp_ops[op.aux];
  *what = static_cast<int>(warp_op.kind);
  return static_cast<std::uint32_t>(LaneValue(path, warp_op.mask, std::countr_zero(path.mask), 4)) &
         path.warp->live;
}

// The operation names these lanes instead.
Edit MaskEdit(const Path& path, std::uint32_t lanes) {
  Edit edit = EditAt(CodeOf(path), path.pc, Edit::Action::kReplace, Edit::By::kThread,
                     fmt::format("0x{:08x}u", lanes));
  edit.from = "mask";
  return edit;
}

// A barrier that only some threads reach leaves what only they execute; so does that of the others.
Edit HoistEdit(const Path& one, const Path& other) {
  const Code& code = CodeOf(one);
  const bool first = Before(code, one.pc, other.pc);
  Edit edit = EditAt(code, first ? one.pc : other.pc, Edit::Action::kHoist, Edit::By::kBlock,
                     "__syncthreads();");
  edit.to = EditAt(code, first ? other.pc : one.pc, Edit::Action::kHoist, Edit::By::kBlock, "").at;
  return edit;
}

}  // namespace

FindingAccess Errors::Show(const Path& path, int lane, std::uint32_t pc, const char* what) const {
  return ShowThread(state_, path, lane, pc, what);
}

FindingAccess Errors::Show(const Path& path, const char* what) const {
  std::uint32_t pc = path.pc;
  if (path.parked != nullptr) {
    pc = path.parked->reads.empty() ? path.parked->loop->branch : path.parked->reads.front().pc;
  }
  return Show(path, path.mask == 0 ? 0 : std::countr_zero(path.mask), pc, what);
}

void Errors::Say(Finding::Kind kind, std::string text, std::string advice,
                 std::vector<FindingAccess> accesses, std::uint32_t pc, std::vector<Edit> edits) {
  std::string key = fmt::format("{} {}", node::NameOf(kind), pc);
  for (const FindingAccess& access : accesses) {
    key += fmt::format("|{} {} {}:{}", access.kernel, access.form, access.file, access.line);
  }
  Finding finding;
  finding.kind = kind;
  finding.text = std::move(text);
  finding.advice = std::move(advice);
  finding.accesses = std::move(accesses);
  std::erase_if(edits, [](const Edit& edit) { return edit.at.empty(); });
  finding.edits = std::move(edits);
  tell_(std::move(finding), key);
}

void Errors::OnBarrier(const Path& path, std::uint32_t id, const NamedBarrier& barrier,
                       std::uint32_t count) {
  const Cta& cta = *path.warp->cta;
  if (count % kLanes != 0) {
    Say(Finding::Kind::kBarrier,
        fmt::format("barrier {} is given {} threads, which is not a multiple of the warp size", id,
                    count),
        "a barrier counts whole warps: round the number of threads up to a multiple of 32",
        {Show(path, "barrier")}, path.pc);
  }
  const std::uint32_t mine = count == 0 ? ThreadsOf(cta) : RoundUp(count);
  const std::uint32_t theirs = barrier.expected == 0 ? ThreadsOf(cta) : RoundUp(barrier.expected);
  if (barrier.Used() && mine != theirs) {
    std::vector<FindingAccess> accesses = {Show(path, "barrier")};
    if (!barrier.waiting.empty()) accesses.push_back(Show(*barrier.waiting.front(), "barrier"));
    Say(Finding::Kind::kBarrier,
        fmt::format("barrier {} is given {} threads by one participant and {} by another", id, mine,
                    theirs),
        "give the barrier the same number of threads everywhere: all threads that sync or arrive",
        std::move(accesses), path.pc);
  }
  const std::uint32_t bit = 1u << path.warp->id % 32;
  if ((barrier.came & bit) != 0) {
    std::vector<FindingAccess> accesses = {Show(path, "barrier")};
    if (!barrier.waiting.empty()) accesses.push_back(Show(*barrier.waiting.front(), "barrier"));
    Say(Finding::Kind::kBarrier,
        fmt::format("warp {} reaches barrier {} a second time before the barrier is complete",
                    path.warp->id, id),
        "let the arriving threads wait at another barrier until the others have reached this one",
        std::move(accesses), path.pc);
  }
}

void Errors::OnUnorderedBarrier(const Path& path, std::uint32_t id) {
  Say(Finding::Kind::kBarrier,
      fmt::format(
          "warp {} reaches barrier {} again after bar.arrive, and nothing orders this after the "
          "end of that phase: both may count for the same phase",
          path.warp->id, id),
      "let the arriving threads wait at another barrier until the threads at this one have left it",
      {Show(path, "barrier")}, path.pc);
}

void Errors::OnParts(const Warp& warp, const NamedBarrier& barrier) {
  const Path* first = nullptr;
  for (const Path* path : barrier.waiting) {
    if (path->warp != &warp) continue;
    const Code& code = CodeOf(*path);
    if (!code.barriers[code.ops[path->pc].aux].aligned) continue;
    if (first == nullptr) first = path;
    if (path->pc == first->pc) continue;
    Say(Finding::Kind::kBarrier,
        fmt::format("parts of warp {} reach one barrier at different places", warp.id),
        "move __syncthreads() out of code that only some threads of a warp execute",
        {Show(*path, "barrier"), Show(*first, "barrier")}, path->pc, {HoistEdit(*path, *first)});
    return;
  }
}

void Errors::OnBlocked(const Cta& cta) {
  if (cta.live_threads == 0) return;
  // The last warps are usually still on their way.
  for (auto warp = cta.warps.rbegin(); warp != cta.warps.rend(); ++warp) {
    std::uint32_t blocked = 0;
    for (const Path* path : warp->paths) {
      if (!AtBarrier(*path) && path->state != Path::State::kWarpSync) return;
      blocked |= path->mask;
    }
    if (blocked != warp->live) return;
  }
  if (!blocked_.insert(cta.number).second) return;
  if (blocked_.size() > kMaxPolls) blocked_.erase(blocked_.begin());
  // If lanes wait for each other, that the barrier is not reached is a consequence.
  bool stuck = false;
  for (const Warp& warp : cta.warps) stuck |= TellWarpStuck(warp);
  if (stuck) return;
  for (std::size_t id = 0; id < cta.barriers.size(); ++id) {
    const NamedBarrier& barrier = cta.barriers[id];
    if (barrier.waiting.empty()) continue;
    std::vector<FindingAccess> accesses = {Show(*barrier.waiting.front(), "barrier")};
    for (const Warp& warp : cta.warps) {
      for (const Path* path : warp.paths) {
        if (accesses.size() == 2 || std::find(barrier.waiting.begin(), barrier.waiting.end(),
                                              path) != barrier.waiting.end()) {
          continue;
        }
        accesses.push_back(Show(*path, AtBarrier(*path) ? "barrier" : "warp"));
      }
    }
    const std::uint32_t expected = barrier.expected == 0 ? ThreadsOf(cta) : barrier.expected;
    std::uint32_t lanes = 0;
    for (const Path* path : barrier.waiting) {
      lanes += static_cast<std::uint32_t>(std::popcount(path->mask));
    }
    const char* others = accesses.size() == 1 ? "no other thread of the block is left"
                                              : "all other threads of the block wait elsewhere";
    Say(Finding::Kind::kBarrier,
        fmt::format("barrier {} is incomplete: {} threads of {} wait at it, and {}", id, lanes,
                    expected, others),
        "let every thread that the barrier counts reach it on every path", std::move(accesses),
        barrier.waiting.front()->pc);
  }
}

void Errors::PassBy(const Path& path) {
  int own_what = 0;
  const std::uint32_t own = MembersOf(path, &own_what);
  for (const Path* other : path.warp->paths) {
    if (other == &path || other->state != Path::State::kWarpSync) continue;
    int what = 0;
    const std::uint32_t members = MembersOf(*other, &what);
    // Only bar.warp.sync waits for all threads of its mask, the others for those that have not
    // exited (PTX ISA).
    if (what != static_cast<int>(WarpOpKind::kSync)) continue;
    if (members == own && what == own_what) continue;  // together with it
    if ((members & path.mask) != 0) passed_by_[other] |= members & path.mask;
  }
}

void Errors::TellExit(const Path& path, std::uint32_t lanes) {
  for (const Path* other : path.warp->paths) {
    const auto it = passed_by_.find(other);
    if (it == passed_by_.end() || other->state != Path::State::kWarpSync) continue;
    const std::uint32_t gone = it->second & lanes;
    if (gone == 0) continue;
    Say(Finding::Kind::kWarpMask,
        fmt::format("lanes 0x{:08x} wait in {} for lanes 0x{:08x}, which have executed operations "
                    "with another mask and exit without executing this one",
                    other->mask, CodeOf(*other).forms[other->pc], gone),
        "include only the lanes that execute the operation, with the same mask in all of them",
        {Show(*other, "warp")}, other->pc, {MaskEdit(*other, other->mask)});
    passed_by_.erase(it);
  }
}

void Errors::Remember(const Path& path) {
  constexpr std::size_t kMostParts = 4096;
  if (parts_.size() >= kMostParts) parts_.clear();
  Part& part = parts_[{path.warp->cta->number, path.warp->id}];
  if (part.pc != path.pc) part = {path.pc, 0};
  part.lanes |= path.mask;
}

// They have executed the same instruction with a mask of their own.
bool Errors::CameBefore(const Path& path, std::uint32_t lanes) const {
  const auto part = parts_.find({path.warp->cta->number, path.warp->id});
  return part != parts_.end() && part->second.pc == path.pc && (lanes & ~part->second.lanes) == 0;
}

void Errors::OnWarpSync(const Path& path) {
  passed_by_.erase(&path);
  int what = 0;
  const std::uint32_t members = MembersOf(path, &what);
  if (members != kAllLanes) Remember(path);
  if (const std::uint32_t left_out = path.mask & ~members; left_out != 0) {
    Say(Finding::Kind::kWarpMask,
        fmt::format("lane {} executes {} with the mask 0x{:08x}, which does not include it",
                    std::countr_zero(left_out), CodeOf(path).forms[path.pc], members),
        "include each calling thread in the mask",
        {Show(path, std::countr_zero(left_out), path.pc, "warp")}, path.pc,
        {MaskEdit(path, path.mask | members)});
  }
  if (path.state != Path::State::kWarpSync) return;
  for (const Path* other : path.warp->paths) {
    if (other == &path || other->state != Path::State::kWarpSync) continue;
    int other_what = 0;
    const std::uint32_t others = MembersOf(*other, &other_what);
    if (others == members && other_what == what) continue;  // it is the rest that is missing
    if ((members & other->mask) == 0 || (others & path.mask) == 0) continue;
    const bool masks = others != members;
    Say(Finding::Kind::kWarpMask,
        masks ? fmt::format("lanes 0x{:08x} wait with the mask 0x{:08x} for lanes 0x{:08x}, which "
                            "wait for them with the mask 0x{:08x}",
                            path.mask, members, other->mask, others)
              : fmt::format("lanes 0x{:08x} and 0x{:08x} wait for each other in different "
                            "operations",
                            path.mask, other->mask),
        "let all threads of a mask execute the same operation with the same mask",
        {Show(path, "warp"), Show(*other, "warp")}, path.pc,
        masks && path.pc == other->pc ? std::vector{MaskEdit(path, members | others)}
                                      : std::vector<Edit>());
    return;
  }
}

void Errors::OnShuffle(const Path& path, int lane, int from, std::uint32_t lanes) {
  const Code& code = CodeOf(path);
  const WarpOp& op = code.warp_ops[code.ops[path.pc].aux];
  const bool slides = op.kind == WarpOpKind::kShflUp || op.kind == WarpOpKind::kShflDown;
  const int first = std::countr_zero(lanes), last = 31 - std::countl_zero(lanes);
  if (slides && (from < first || from > last)) return;
  const auto mask = static_cast<std::uint32_t>(LaneValue(path, op.mask, lane, 4));
  const bool named = (mask >> from & 1) != 0;
  Say(Finding::Kind::kWarpMask,
      fmt::format("lane {} reads from lane {} by {} with the mask 0x{:08x}, and that lane {}: the "
                  "result is undefined",
                  lane, from, code.forms[path.pc], mask,
                  named ? "has exited" : "is not in the mask"),
      named ? "let all source lanes execute the shuffle before they exit"
            : "include the source lane in the mask, and let it execute the shuffle with the "
              "same mask; or read from a lane of the mask",
      {Show(path, lane, path.pc, "warp")}, path.pc,
      !named && (path.mask >> from & 1) != 0 ? std::vector{MaskEdit(path, mask | path.mask)}
                                             : std::vector<Edit>());
}

bool Errors::TellWarpStuck(const Warp& warp) {
  for (const Path* path : warp.paths) {
    if (path->state != Path::State::kWarpSync) continue;
    int what = 0;
    const std::uint32_t members = MembersOf(*path, &what);
    std::uint32_t missing = members;
    for (const Path* other : warp.paths) {
      if (other->state != Path::State::kWarpSync) continue;
      int other_what = 0;
      const std::uint32_t others = MembersOf(*other, &other_what);
      if (other_what == what && (others & path->mask) != 0) missing &= ~other->mask;
    }
    if (missing == 0) continue;
    // Lanes that wait for each other have been reported when they came (OnWarpSync).
    if (std::any_of(warp.paths.begin(), warp.paths.end(), [&](const Path* other) {
          int other_what = 0;
          return other->state == Path::State::kWarpSync && (other->mask & missing) != 0 &&
                 (MembersOf(*other, &other_what) & path->mask) != 0;
        }))
      return true;
    std::vector<FindingAccess> accesses = {Show(*path, "warp")};
    for (const Path* other : warp.paths) {
      if (other == path || (other->mask & missing) == 0) continue;
      accesses.push_back(Show(*other, AtBarrier(*other) ? "barrier" : "warp"));
      break;
    }
    Say(Finding::Kind::kWarpMask,
        fmt::format("lanes 0x{:08x} wait in {} for lanes 0x{:08x}, which are in their mask and are "
                    "blocked elsewhere",
                    path->mask, CodeOf(*path).forms[path->pc], missing),
        "include only the lanes that execute the operation, with the same mask in all of them, or "
        "let the others execute it as well",
        std::move(accesses), path->pc,
        // A shuffle may be meant to read from those that are missing.
        what >= 0 && CameBefore(*path, missing) ? std::vector{MaskEdit(*path, members)}
        : what < 0 || CodeOf(*path).forms[path->pc].starts_with("shfl")
            ? std::vector<Edit>()
            : std::vector{MaskEdit(*path, members & ~missing)});
    return true;
  }
  return false;
}

void Errors::OnMbarrierWait(const Path& path, const Cta& cta, std::uint32_t offset,
                            std::uint32_t lanes, bool ended, std::uint32_t parity,
                            std::uint32_t phases) {
  const std::tuple key{cta.number, offset, path.warp->id};
  const auto found = polls_.find(key);
  if (found == polls_.end()) {
    if (ended) return;
    if (polls_.size() >= kMaxPolls) polls_.clear();
    polls_[key] = {lanes, parity, phases};
    return;
  }
  Poll& poll = found->second;
  if (ended) {
    poll.lanes &= ~lanes;
    if (poll.lanes == 0) polls_.erase(found);
    return;
  }
  if (poll.parity == parity && poll.phases == phases) {
    poll.lanes |= lanes;
    return;
  }
  if (poll.parity == parity && (poll.lanes & lanes) != 0 && phases - poll.phases >= 2) {
    FindingAccess access = Show(path, std::countr_zero(lanes), path.pc, "mbarrier");
    access.object = cta.shared_object.name;
    access.offset = offset;
    Say(Finding::Kind::kMbarrier,
        fmt::format("the phase of parity {} for which {} waits has ended, and so has the next: it "
                    "waits for a phase that is two phases later",
                    parity, access.form),
        "let no thread arrive for the next phase before all have observed the end of this one, for "
        "example with a second mbarrier",
        {access}, path.pc);
  }
  poll = {lanes, parity, phases};
}

void Errors::OnPark(const Path& path, const SpinState& spin, bool for_ever) {
  const Code& code = CodeOf(path);
  if (spin.reads.empty()) {
    if (!for_ever || spin.reads_clock) return;
    Say(Finding::Kind::kWeakSpin, "a loop that reads no memory never ends",
        "to wait for memory, use a volatile, relaxed or acquire load: the compiler may move a weak "
        "load out of the loop",
        {Show(path, std::countr_zero(path.mask), spin.loop->branch, "spin")}, spin.loop->branch);
    return;
  }
  // A loop that ends by counting need not wait: what it reads again may decide nothing. If it does
  // wait, its loads and the write that it waits for are a race.
  if (!for_ever && !spin.reads_clock) return;
  const SpinRead* weak = nullptr;
  for (const SpinRead& read : spin.reads) {
    const Op& op = code.ops[read.pc];
    if (op.kind != OpKind::kMemory || code.memory[op.aux].Strong()) return;
    if (weak == nullptr) weak = &read;
  }
  FindingAccess access = Show(path, std::countr_zero(path.mask), weak->pc, "load");
  ShowObject(state_, *weak->object, &access);
  access.offset = weak->offset;
  access.bytes = weak->lane_size;
  Edit strong = EditAt(code, weak->pc, Edit::Action::kReplace, Edit::By::kThread, "relaxed.sys");
  strong.from = "weak";
  Edit fence = EditAt(code, weak->pc, Edit::Action::kInsertAfter, Edit::By::kThread,
                      "__threadfence_system();");
  Say(Finding::Kind::kWeakSpin,
      fmt::format(
          "a loop waits by {}, which is weak and may never observe the write of another thread",
          access.form),
      "use a volatile, relaxed or acquire load of a scope that includes the writer; data behind "
      "the "
      "flag needs the acquire, or __threadfence_system() after the loop",
      {access}, weak->pc, {std::move(strong), std::move(fence)});
}

void Errors::OnStuck() {
  for (const Device& device : state_.devices) {
    for (const Launch& launch : device.launches) {
      for (const Cta* cta : launch.ctas) {
        for (const Warp& warp : cta->warps) TellWarpStuck(warp);
        if (cta->mbarriers.empty()) continue;
        // Whoever could complete a phase: the block, or its cluster.
        const std::vector<const Cta*> alone = {cta};
        std::vector<const Cta*> together;
        if (cta->cluster != nullptr)
          together.assign(cta->cluster->ctas.begin(), cta->cluster->ctas.end());
        const Path* waiter = nullptr;
        std::int64_t offset = -1;
        bool all = true;
        for (const Cta* of : cta->cluster != nullptr ? together : alone) {
          if (of == nullptr) continue;
          for (const Warp& warp : of->warps) {
            for (const Path* path : warp.paths) {
              if (AtBarrier(*path) || path->state == Path::State::kWarpSync) continue;
              if (AtClusterBarrier(*path)) continue;
              const std::int64_t at = MbarrierWaitedFor(*path);
              all &= at >= 0;
              if (at < 0 || waiter != nullptr || of != cta) continue;
              waiter = path;
              offset = at;
            }
          }
        }
        if (!all || waiter == nullptr || !blocked_.insert(cta->number).second) continue;
        FindingAccess access = Show(*waiter, "mbarrier");
        access.object = cta->shared_object.name;
        access.offset = static_cast<std::uint64_t>(offset);
        Say(Finding::Kind::kMbarrier,
            fmt::format("a phase waits for {}, and all threads of the {} wait",
                        DescribePhase(*cta, static_cast<std::uint32_t>(offset)),
                        together.size() > 1 ? "cluster" : "block"),
            "initialise the mbarrier with the number of arrivals of one phase, and expect as many "
            "bytes as its copies transfer",
            {access}, waiter->pc);
      }
    }
  }
}

}  // namespace allranks::node::check
