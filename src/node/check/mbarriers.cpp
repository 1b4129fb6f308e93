// The life of an mbarrier: init, use, inval. PTX ISA, mbarrier: the object is opaque from its init
// to its inval, and nobody but mbarrier operations may touch its bytes in between.
//
// An init and an inval are weak writes of the eight bytes, remembered in the shadow like ordinary
// stores. All other operations are morally strong to each other; each must be ordered after the
// init, and an inval after each. A fence.mbarrier_init is a release for inits alone: therefore an
// init has a second stamp, of a warp that only such fences make known.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "node/check/checker.h"
#include "node/check/remedy.h"
#include "node/code/lanes.h"

namespace allranks::node::check {
namespace {

constexpr std::uint32_t kMbarrierBytes = 8;

std::uint16_t SlotBit(std::uint32_t offset) {
  return static_cast<std::uint16_t>(1u << offset % kLineBytes / kMbarrierBytes);
}

std::string PlaceOf(const FindingAccess& access) {
  if (access.line == 0) return access.form;
  return fmt::format("{}:{}{}", access.file, access.line,
                     access.inlined_at.empty() ? "" : " (inlined at " + access.inlined_at + ")");
}

// One line of source is one cause, however often the compiler has unrolled it.
std::uint64_t CauseOf(const Code& code, std::uint32_t pc) {
  const SourceLine& line = code.lines[pc];
  if (line.line == 0) return pc;
  return std::hash<std::string>{}(fmt::format("{}:{} {}", line.file, line.line, line.inlined_at));
}

void OnShared(FindingAccess& access, std::uint32_t offset) {
  access.what = "mbarrier";
  access.object = "shared memory";
  access.offset = offset;
  access.bytes = kMbarrierBytes;
}

// An operation on an mbarrier, as the shadow has accesses.
Entry EntryOf(const Stamp& by, std::uint32_t pc, std::uint32_t offset) {
  Entry entry;
  entry.agent = by.agent;
  entry.tick = by.tick;
  entry.pc = pc;
  entry.warp = by.warp;
  entry.lane = by.lane;
  entry.first = static_cast<std::uint8_t>(offset % kLineBytes);
  entry.width = entry.stride = kMbarrierBytes;
  entry.kind = Entry::kWrite;
  return entry;
}

}  // namespace

Line& Checker::MbarrierWrites(const Path& path, int lane, Cta& target, std::uint32_t offset) {
  CtaClocks& cta = *path.warp->cta->clocks;
  const Group& group = GroupOf(Of(path), lane);
  const Stamp by{cta.agent, cta.tick, static_cast<std::uint16_t>(path.warp->id),
                 static_cast<std::uint8_t>(lane)};
  const Entry entry = EntryOf(by, path.pc, offset);
  Line& line = ShadowOf(target.shared_object).At(offset / kLineBytes);
  Check(line, entry, group, cta, target.shared_object, offset / kLineBytes);
  line.AddWrite(entry, [](const Entry&) { return false; });
  return line;
}

void Checker::MbarrierBegins(const Path& path, int lane, Cta& target, std::uint32_t offset,
                             bool live) {
  CtaClocks& cta = *path.warp->cta->clocks;
  MbarrierClocks& mbarrier = target.clocks->mbarriers[offset];
  if (live) {
    const Launch& launch = *path.warp->cta->launch;
    const auto code = reinterpret_cast<std::uintptr_t>(launch.code.get());
    // Several threads execute the same inits: one is enough, and it is one cause.
    const Dim3& block = launch.request.block;
    const bool several = path.pc == mbarrier.init_pc && mbarrier.init.agent == cta.agent &&
                         block.y == 1 && block.z == 1 &&
                         (mbarrier.init.warp != path.warp->id || mbarrier.init.lane != lane);
    const SeenKey key = several ? SeenKey{code, 0, 0, 1, 6}
                                : SeenKey{code, CauseOf(*launch.code, path.pc),
                                          CauseOf(*launch.code, mbarrier.init_pc), 0, 6};
    Edit guard;
    if (several)
      guard = EditAt(
          *launch.code, path.pc, Edit::Action::kInsertBefore, Edit::By::kThread,
          fmt::format("if (threadIdx.x == {})", mbarrier.init.warp * kLanes + mbarrier.init.lane));
    if (const auto known = seen_.find(key); several && known != seen_.end()) {
      std::vector<Edit>& edits = findings_[known->second].edits;
      const auto lines = [](const Edit& edit) {
        std::vector<int> all;
        for (const Edit::Place& at : edit.at) all.push_back(at.line);
        return all;
      };
      if (!guard.at.empty() && std::none_of(edits.begin(), edits.end(), [&](const Edit& one) {
            return lines(one) == lines(guard);
          })) {
        edits.push_back(guard);
      }
    }
    if (!Again(key, Finding::Kind::kMbarrier)) {
      seen_.emplace(key, findings_.size());
      Finding finding;
      finding.kind = Finding::Kind::kMbarrier;
      finding.accesses = {ShowThread(state_, path, lane, path.pc, "mbarrier"),
                          Show(EntryOf(mbarrier.init, mbarrier.init_pc, offset), mbarrier.init.lane,
                               target.shared_object, offset / kLineBytes)};
      for (FindingAccess& access : finding.accesses) OnShared(access, offset);
      finding.text = fmt::format(
          "mbarrier.init of shared memory + {}, which contains an mbarrier that is still valid",
          offset);
      finding.advice = fmt::format(
          "let one thread initialise it once; to reuse the bytes, synchronise all threads that use "
          "the "
          "mbarrier (__syncthreads()) and execute mbarrier.inval before the init at {}",
          PlaceOf(finding.accesses[0]));
      // The same thread initialises it again: it may invalidate it first, if its users have met.
      if (!several && mbarrier.init.agent == cta.agent && mbarrier.init.warp == path.warp->id &&
          mbarrier.init.lane == lane) {
        guard = EditAt(*launch.code, path.pc, Edit::Action::kInsertBefore, Edit::By::kThread,
                       "asm volatile(\"mbarrier.inval.shared::cta.b64 [%0];\" :: \"r\"(static_cast<"
                       "unsigned>(__cvta_generic_to_shared($at.address))) : \"memory\");");
      }
      AddEdit(std::move(guard), &finding);
      Push(std::move(finding));
    }
  } else {
    Line& line = MbarrierWrites(path, lane, target, offset);
    line.Extra().mbarriers |= SlotBit(offset);
  }
  mbarrier = {};
  mbarrier.init = {cta.agent, cta.tick, static_cast<std::uint16_t>(path.warp->id),
                   static_cast<std::uint8_t>(lane)};
  mbarrier.init_pc = path.pc;
  ++cta.tick;
}

void Checker::MbarrierUsed(const Path& path, std::uint32_t lanes, Cta& target, std::uint32_t offset,
                           bool wait) {
  const auto found = target.clocks->mbarriers.find(offset);
  if (found == target.clocks->mbarriers.end() || found->second.init.agent == 0) return;
  MbarrierClocks& mbarrier = found->second;
  const CtaClocks& cta = *path.warp->cta->clocks;
  const auto warp = static_cast<std::uint16_t>(path.warp->id);
  const Stamp& init = mbarrier.init;
  const std::uint32_t bit = 1u << init.lane;
  const auto inits = static_cast<std::uint16_t>(kMbarrierInits + init.warp);
  const auto in = [&](const KnownRef& known) {
    return LanesOf(known, init.warp, bit, init.tick) != 0 ||
           LanesOf(known, inits, bit, init.tick) != 0;
  };
  const bool own = init.agent == cta.agent;
  ForLanes(lanes, [&](int l) {
    const Group& group = GroupOf(Of(path), l);
    if (own && (init.tick <= BaseOf(group.own) || (init.warp == warp && init.lane == l))) return;
    if (in(own ? group.own : group.others != nullptr ? group.others->Of(init.agent) : nullptr))
      return;
    const Code& code = *agents_[init.agent].info->code;
    const SeenKey key = {reinterpret_cast<std::uintptr_t>(&code), CauseOf(code, mbarrier.init_pc),
                         0, 0, 7};
    if (Again(key, Finding::Kind::kRace)) return;
    seen_.emplace(key, findings_.size());
    Finding finding;
    finding.kind = Finding::Kind::kRace;
    finding.accesses = {ShowThread(state_, path, l, path.pc, "mbarrier"),
                        Show(EntryOf(init, mbarrier.init_pc, offset), init.lane,
                             target.shared_object, offset / kLineBytes)};
    for (FindingAccess& access : finding.accesses) OnShared(access, offset);
    finding.text = fmt::format(
        "{} on the mbarrier at shared memory + {} and its mbarrier.init are not ordered: the "
        "mbarrier may not be initialised yet",
        finding.accesses[0].form, offset);
    const std::string place = PlaceOf(finding.accesses[1]);
    const auto add = [&](Edit::By by, const char* text) {
      AddEdit(EditAt(code, mbarrier.init_pc, Edit::Action::kInsertAfter, by, text), &finding);
    };
    // In a cluster its barrier serves the block's own threads as well.
    if (target.cluster == nullptr || target.cluster->ctas.size() == 1) {
      finding.missing = "no barrier of the block is between the init and the use";
      finding.advice = fmt::format(
          "put __syncthreads() after the mbarrier.init at {}, before any other thread uses the "
          "mbarrier",
          place);
      add(Edit::By::kBlock, "__syncthreads();");
    } else {
      finding.missing = "no cluster barrier with release and acquire is between them";
      finding.advice = fmt::format(
          "put fence.mbarrier_init.release.cluster after the mbarrier.init at {} in the same "
          "thread, and let all threads of the cluster execute barrier.cluster.arrive.release and "
          "barrier.cluster.wait.acquire (cluster.sync()) before the use at {}",
          place, PlaceOf(finding.accesses[0]));
      add(Edit::By::kThread,
          "asm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\");");
      add(Edit::By::kBlock, kClusterBarrier);
    }
    Push(std::move(finding));
  });
  auto use =
      std::find_if(mbarrier.uses.begin(), mbarrier.uses.end(), [&](const MbarrierClocks::Use& old) {
        return old.agent == cta.agent && old.warp == warp && old.wait == wait;
      });
  if (use == mbarrier.uses.end())
    use = mbarrier.uses.insert(use, MbarrierClocks::Use{cta.agent, warp, wait, path.pc, {}});
  use->pc = path.pc;
  ForLanes(lanes, [&](int l) { use->tick[static_cast<std::size_t>(l)] = cta.tick; });
}

void Checker::MbarrierInvalid(const Path& path, int lane, Cta& target, std::uint32_t offset) {
  MbarrierUsed(path, 1u << lane, target, offset, true);
  CtaClocks& cta = *path.warp->cta->clocks;
  const auto warp = static_cast<std::uint16_t>(path.warp->id);
  const MbarrierClocks mbarrier = std::move(target.clocks->mbarriers[offset]);
  target.clocks->mbarriers.erase(offset);
  const Group& group = GroupOf(Of(path), lane);
  // A lane speaks for its warp: libcu++'s pipeline lets one lane count down for all that a
  // match.sync has brought together, and whoever comes last invalidates.
  const auto knows = [&](const Stamp& by) {
    if (by.agent == cta.agent)
      return by.warp == warp || LanesOf(group.own, by.warp, kAllLanes, by.tick) != 0;
    return group.others != nullptr &&
           (group.others->Over(by.agent, places_) ||
            LanesOf(group.others->Of(by.agent), by.warp, kAllLanes, by.tick) != 0);
  };
  for (const MbarrierClocks::Use& use : mbarrier.uses) {
    for (std::uint8_t l = 0; l < kLanes; ++l) {
      const Stamp by{use.agent, use.tick[l], use.warp, l};
      if (by.tick == 0 || knows(by)) continue;
      const Launch& launch = *path.warp->cta->launch;
      const SeenKey key = {reinterpret_cast<std::uintptr_t>(launch.code.get()), path.pc, use.pc, 0,
                           8};
      if (Again(key, Finding::Kind::kRace)) break;
      seen_.emplace(key, findings_.size());
      Finding finding;
      finding.kind = Finding::Kind::kRace;
      finding.accesses = {
          ShowThread(state_, path, lane, path.pc, "mbarrier"),
          Show(EntryOf(by, use.pc, offset), l, target.shared_object, offset / kLineBytes)};
      for (FindingAccess& access : finding.accesses) OnShared(access, offset);
      finding.text = fmt::format(
          "mbarrier.inval of shared memory + {} and {} before it are not ordered: that thread may "
          "still use the mbarrier",
          offset, finding.accesses[1].form);
      finding.missing = "nothing orders the use of the other thread before the invalidation";
      finding.advice = fmt::format(
          "put {} before the mbarrier.inval at {}",
          use.agent == cta.agent ? "__syncthreads()" : "a barrier of the cluster (cluster.sync())",
          PlaceOf(finding.accesses[0]));
      AddEdit(EditAt(*launch.code, path.pc, Edit::Action::kInsertBefore, Edit::By::kBlock,
                     use.agent == cta.agent ? "__syncthreads();" : kClusterBarrier),
              &finding);
      Push(std::move(finding));
      break;
    }
  }
  Line& line = MbarrierWrites(path, lane, target, offset);
  if (line.more != nullptr) line.more->mbarriers &= static_cast<std::uint16_t>(~SlotBit(offset));
  ++cta.tick;
}

void Checker::CheckMbarriers(const Line& line, const Entry& a, const Object& object,
                             std::uint64_t number) {
  for (std::uint32_t left = line.Mbarriers(); left != 0; left &= left - 1) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(left)) * kMbarrierBytes;
    Entry place = EntryOf({}, 0, first);
    if (!a.Overlaps(place)) continue;
    const Code* const code = agents_[a.agent].info->code.get();
    const SeenKey key = {reinterpret_cast<std::uintptr_t>(code), a.pc, 0, 0, 9};
    if (Again(key, Finding::Kind::kMbarrier)) return;
    seen_.emplace(key, findings_.size());
    std::uint32_t lanes = 0;
    bool crossed = false;
    place.Common(a, &lanes, &crossed);
    Finding finding;
    finding.kind = Finding::Kind::kMbarrier;
    finding.accesses = {
        Show(a, lanes != 0 ? static_cast<std::uint32_t>(std::countr_zero(lanes)) : a.lane, object,
             number)};
    line.ForWrites([&](const Entry& e) {
      const Code* const writer = agents_[e.agent].info->code.get();
      if (finding.accesses.size() == 1 && writer != nullptr && e.Overlaps(place) &&
          writer->forms[e.pc].starts_with("mbarrier.init")) {
        finding.accesses.push_back(Show(e, e.lane, object, number));
        OnShared(finding.accesses.back(), static_cast<std::uint32_t>(number * kLineBytes + first));
      }
    });
    finding.text = fmt::format(
        "{} of the bytes of a live mbarrier (shared memory + {}): only mbarrier operations may "
        "access them until mbarrier.inval",
        finding.accesses[0].what, number * kLineBytes + first);
    finding.advice = fmt::format(
        "keep the bytes separate from other data, or synchronise all threads that use the mbarrier "
        "(__syncthreads()), let one of them execute mbarrier.inval, and synchronise again before "
        "{}",
        PlaceOf(finding.accesses[0]));
    Push(std::move(finding));
    return;
  }
}

}  // namespace allranks::node::check
