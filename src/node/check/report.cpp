// Findings: what an access is called, and which findings are one. What order is missing:
// explain.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "node/check/checker.h"
#include "node/check/remedy.h"
#include "node/code/special.h"
#include "node/findings.h"
#include "node/object_name.h"

namespace allranks::node::check {
namespace {

// Findings that count against a program, and those that do not: neither can crowd out the other.
constexpr std::size_t kMostCounted = 256, kMostOthers = 64;
// So many times a pair of places is looked at for its remedy.
constexpr std::uint64_t kLookedAt = 64;

bool Counts(Finding::Kind kind) {
  return kind != Finding::Kind::kPortability && kind != Finding::Kind::kLeak;
}

void Locate(const Code& code, std::uint32_t pc, FindingAccess* access) {
  if (pc >= code.forms.size()) return;
  access->form = code.forms[pc];
  access->file = code.lines[pc].file;
  access->line = code.lines[pc].line;
  access->inlined_at = code.lines[pc].inlined_at;
}

std::string StreamName(const LaunchInfo& info) {
  if (info.op == 0) return "";
  return info.legacy ? "the default stream" : fmt::format("stream {}", info.stream);
}

// Nobody else has a part in it.
bool OfTrusted(const Finding& finding) {
  return !finding.accesses.empty() &&
         std::ranges::all_of(finding.accesses, &FindingAccess::trusted);
}

}  // namespace

std::vector<Finding> Checker::TakeFindings() {
  keys_.clear();
  seen_.clear();
  counted_ = others_ = 0;
  FoldConsequences(&findings_);
  FoldOrders(&findings_);
  std::erase_if(findings_, OfTrusted);
  return std::exchange(findings_, {});
}

bool Checker::Full(Finding::Kind kind) const {
  if (given_up_) return true;
  return Counts(kind) ? counted_ >= kMostCounted : others_ >= kMostOthers;
}

// Findings of one cause are one.
std::size_t Checker::PushCause(Finding finding) {
  for (std::size_t i = 0; i < findings_.size(); ++i) {
    if (!SameCause(findings_[i], finding)) continue;
    node::Merge(std::move(finding), &findings_[i]);
    return i;
  }
  Push(std::move(finding));
  return findings_.size() - 1;
}

bool Checker::Again(const SeenKey& key, Finding::Kind kind) {
  if (const auto it = seen_.find(key); it != seen_.end()) {
    ++findings_[it->second].count;
    return true;
  }
  return Full(kind);
}

void Checker::Push(Finding finding) {
  // Those leave the room to others.
  if (!OfTrusted(finding)) ++(Counts(finding.kind) ? counted_ : others_);
  finding.schedule = seed_;
  findings_.push_back(std::move(finding));
}

void Checker::Add(Finding finding, const std::string& key) {
  if (const auto it = keys_.find(key); it != keys_.end()) {
    findings_[it->second].count += finding.count;
    return;
  }
  if (Full(finding.kind)) return;
  keys_.emplace(key, findings_.size());
  Push(std::move(finding));
}

FindingAccess ShowThread(State& state, const Path& path, int lane, std::uint32_t pc,
                         const char* what) {
  const Cta& cta = *path.warp->cta;
  const Launch& launch = *cta.launch;
  FindingAccess access;
  access.what = what;
  access.rank = state.ProcessOf(launch.process).rank;
  access.alone = state.Alone();
  access.device = launch.device->number;
  access.kernel = launch.code->name;
  access.trusted = launch.trusted;
  access.block = cta.index;
  access.thread = path.warp->id * kLanes + static_cast<std::uint32_t>(lane);
  access.time = path.clock;
  if (launch.clocks != nullptr && state.checker != nullptr) {
    access.site = state.checker->SiteOf(launch.clocks->info->site);
    access.stream = StreamName(*launch.clocks->info);
  }
  Locate(*launch.code, pc, &access);
  return access;
}

const HostSite& Checker::SiteOf(SiteId id) const {
  static const HostSite kUnknown;
  return sites_ != nullptr && id != 0 ? sites_->Of(id) : kUnknown;
}

const HostSite& Checker::AllocatedAt(const Object& object) const {
  const auto known = allocated_.find(object.id);
  return SiteOf(known != allocated_.end() ? known->second : 0);
}

std::string NameIn(const State& state, const Object& object) {
  return state.Alone() ? std::string(NameWithoutRank(object.name)) : object.name;
}

void ShowObject(State& state, const Object& object, FindingAccess* access) {
  access->object = NameIn(state, object);
  if (state.checker != nullptr) access->allocated = state.checker->AllocatedAt(object);
}

FindingAccess Checker::Show(const Entry& entry, std::uint32_t lane, const Object& object,
                            std::uint64_t line) const {
  const AgentInfo& agent = agents_[entry.agent];
  FindingAccess access;
  access.write = entry.write();
  ShowObject(state_, object, &access);
  access.bytes = entry.width;
  const std::uint32_t within = lane >= entry.lane ? (lane - entry.lane) * entry.stride : 0;
  access.offset = line * kLineBytes + entry.first + within;
  access.rank = agent.info->rank;
  access.alone = state_.Alone();
  access.device = agent.info->device;
  const bool native = positions_[entry.agent].native;
  access.site = SiteOf(native ? entry.pc : agent.info->site);
  access.stream = StreamName(*agent.info);
  if (agent.info->code == nullptr) {
    access.what = agent.info->what;
    if (native) access.what += entry.write() ? " store" : " load";
    if (!access.site.frames.empty()) {
      access.file = access.site.frames[0].file;
      access.line = access.site.frames[0].line;
    }
    return access;
  }
  access.kernel = agent.info->kernel;
  access.trusted = agent.info->trusted;
  access.block = agent.block;
  if (entry.warp < kFirstCopyWarp) {
    access.what = (entry.kind & Entry::kAtomic) != 0 ? "atomic" : entry.write() ? "store" : "load";
    access.thread = entry.warp * std::uint32_t{kLanes} + lane;
  } else {
    access.what = entry.warp >= kBulkReads ? "bulk copy" : "asynchronous copy";
    if (entry.warp < kMbarrierCopies) access.thread = (entry.warp % 64u) * kLanes + lane;
  }
  Locate(*agent.info->code, entry.pc, &access);
  return access;
}

const Hint* Checker::Boundary(const Entry& earlier, const Entry& later, const Group& group,
                              const CtaClocks& cta) const {
  // A judged call's inputs are written at its beginning, with no end of an operation before it.
  if (const auto& info = agents_[earlier.agent].info; info != nullptr && info->what == "judge")
    return nullptr;
  for (auto hint = cta.hints.rbegin(); hint != cta.hints.rend(); ++hint) {
    if (hint->released || hint->narrow || !hint->acquired) continue;
    const ClockRef& start = agents_[hint->writer.agent].start;
    if (start == nullptr) continue;
    const bool told = start->Over(earlier.agent, places_) ||
                      (earlier.lanes() & ~LanesOf(start->Of(earlier.agent), earlier.warp,
                                                  earlier.lanes(), earlier.tick)) == 0;
    if (told && Knows(group, cta, later.warp, later.lane, hint->reader)) return &*hint;
  }
  return nullptr;
}

void Checker::ReportRace(const Entry& earlier, const Entry& later, std::uint32_t lanes,
                         const CtaClocks* cta, const Object& object, std::uint64_t line, bool proxy,
                         const Hint* boundary) {
  const bool narrow =
      !proxy && earlier.strong() && later.strong() && earlier.element() == later.element() &&
      (earlier.warp >= kBulkReads) == (later.warp >= kBulkReads);  // else the proxies differ
  const auto code = [&](const Entry& e) { return agents_[e.agent].info->code.get(); };
  // Reductions by bulk copies are of device scope and cannot be told otherwise.
  const bool reductions = narrow && earlier.warp >= kFirstCopyWarp && later.warp >= kFirstCopyWarp;
  Finding finding;
  finding.kind = proxy                 ? Finding::Kind::kProxy
                 : reductions          ? Finding::Kind::kPortability
                 : boundary != nullptr ? Finding::Kind::kPortability
                 : narrow              ? Finding::Kind::kScope
                                       : Finding::Kind::kRace;
  // What has no code is told apart by what it is.
  const auto place = [&](const Entry& e) {
    const LaunchInfo& info = *agents_[e.agent].info;
    return info.code != nullptr ? reinterpret_cast<std::uintptr_t>(info.code.get())
                                : std::hash<std::string>{}(info.what) + info.site;
  };
  const SeenKey key = {place(earlier), earlier.pc, place(later), later.pc,
                       proxy                 ? 1u
                       : boundary != nullptr ? 5u
                                             : 0u};
  // Other threads may need a wider scope or barrier at the same places.
  const auto known = seen_.find(key);
  const bool again = known != seen_.end();
  if (again && findings_[known->second].count >= kLookedAt) {
    ++findings_[known->second].count;
    return;
  }
  if (!again && Full(finding.kind)) return;
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
  std::uint32_t met = 0;
  bool crossed = false;
  Entry one = earlier;
  one.first = static_cast<std::uint8_t>(
      earlier.first + (lane >= earlier.lane ? lane - earlier.lane : 0u) * earlier.stride);
  one.lane = static_cast<std::uint8_t>(lane);
  one.count = 1;
  one.Common(later, &met, &crossed);
  if (earlier.SameWarp(later) && std::popcount(met) > 1) met &= ~(1u << lane);
  const auto mine = static_cast<std::uint32_t>(met != 0 ? std::countr_zero(met) : later.lane);
  finding.accesses = {Show(later, mine, object, line), Show(earlier, lane, object, line)};
  Explain(finding, earlier, lane, later, mine, cta, narrow, proxy);
  if (const Code* const reader = code(later);
      reader != nullptr && later.warp < kFirstCopyWarp && !later.write() &&
      reader->forms[later.pc].find(".nc") != std::string::npos) {
    finding.missing = "ld.global.nc is only for bytes that are not written while the kernel runs";
    finding.advice = "use an ordinary load: no __ldg(), no const __restrict__ pointer";
    finding.edits = {EditAt(*reader, later.pc, Edit::Action::kReplace, Edit::By::kThread, "")};
    finding.edits[0].from = ".nc";
  }
  if (boundary != nullptr && !proxy) {
    const Code& writer = *agents_[boundary->writer.agent].info->code;
    const std::string store = PlaceOf(writer, boundary->write_pc);
    finding.text = fmt::format(
        "{} of {} + {} relies on {} being visible to the whole system when the next kernel of its "
        "stream starts",
        Who(finding.accesses[0]), finding.accesses[0].object, finding.accesses[0].offset,
        Who(finding.accesses[1]));
    finding.missing = fmt::format(
        "the flag that the next kernel stores ({}, {}) is not a release: PTX permits it to become "
        "visible before earlier writes of its stream",
        store, writer.forms[boundary->write_pc]);
    finding.advice = fmt::format(
        "at {} store the flag in {} with st.release.{}, or put {} before it in the same thread; "
        "harmless if the end of a kernel or copy flushes to the whole system",
        store, boundary->object, ScopeName(boundary->need), FenceName(boundary->need));
  }
  if (reductions) {
    finding.missing = "PTX guarantees atomicity only among the bulk reductions of one device";
    finding.advice =
        "harmless if a device's L2 performs the reductions of all peers; otherwise let one device "
        "reduce, or use red with scope .sys";
    finding.edits.clear();
  }
  if (again) {
    ++findings_[known->second].count;
    Widen(finding, &findings_[known->second]);
    return;
  }
  seen_.emplace(key, PushCause(std::move(finding)));
}

void Checker::ReportSource(const Path& path, const CtaClocks::Source& source, bool pushed) {
  const Launch& launch = *path.warp->cta->launch;
  const SeenKey key = {reinterpret_cast<std::uintptr_t>(launch.code.get()), source.pc, 0, 0, 3};
  if (Again(key, Finding::Kind::kRace)) return;
  seen_.emplace(key, findings_.size());
  Finding finding;
  finding.kind = Finding::Kind::kRace;
  FindingAccess& copy =
      finding.accesses.emplace_back(ShowThread(state_, path, source.lane, source.pc, "bulk copy"));
  copy.object = "shared memory";
  finding.text = fmt::format(
      "{} may still read shared memory after its thread and block have exited", Who(copy));
  if (pushed) {
    finding.missing = "no thread of the block knows that the copy is complete";
    finding.advice =
        "let the block whose mbarrier it completes wait for it, and then synchronise with a "
        "cluster "
        "barrier (barrier.cluster.arrive.release, wait.acquire) before the block exits";
    Push(std::move(finding));
    return;
  }
  finding.missing = "the thread that started the copy has not waited until its source was read";
  finding.advice = "put cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0 after it";
  AddEdit(EditAt(*launch.code, source.pc, Edit::Action::kInsertAfter, Edit::By::kThread,
                 "asm volatile(\"cp.async.bulk.commit_group; cp.async.bulk.wait_group.read "
                 "0;\" ::: \"memory\");"),
          &finding);
  Push(std::move(finding));
}

void Checker::ReportVector(const StrongWrite& write, const StrongWrite* apart, const Path& path,
                           int lane, const Object& object, std::uint64_t offset,
                           std::uint32_t size) {
  const Launch& launch = *path.warp->cta->launch;
  const LaunchInfo& writer = *agents_[write.by.agent].info;
  if (writer.code == nullptr) return;
  const SeenKey key = {reinterpret_cast<std::uintptr_t>(writer.code.get()), write.pc,
                       reinterpret_cast<std::uintptr_t>(launch.code.get()), path.pc,
                       apart != nullptr ? std::uint64_t{apart->pc} << 8 | 4 : 2};
  if (Again(key, Finding::Kind::kPortability)) return;
  seen_.emplace(key, findings_.size());
  Finding finding;
  finding.kind = Finding::Kind::kPortability;
  FindingAccess& second =
      finding.accesses.emplace_back(ShowThread(state_, path, lane, path.pc, "load"));
  second.object = NameIn(state_, object);
  second.offset = offset;
  second.bytes = size;
  Entry entry;
  entry.agent = write.by.agent;
  entry.warp = write.by.warp;
  entry.lane = write.by.lane;
  entry.pc = write.pc;
  entry.first = write.first;
  entry.width = entry.stride = write.size;
  entry.kind = Entry::kWrite | Entry::kStrong;
  finding.accesses.push_back(Show(entry, entry.lane, object, offset / kLineBytes));
  finding.text =
      "a vector load reads what a vector store of another thread writes, and nothing orders them: "
      "this hardware transfers all elements together, but PTX does not guarantee it";
  finding.advice =
      "harmless if 16-byte accesses (and 128-byte packets) are single; otherwise check a flag in "
      "every 8 bytes";
  if (apart != nullptr) {
    // A helper that stores has one line for both; the calls differ.
    const auto call = [&](std::uint32_t pc) {
      const std::string& inlined = writer.code->lines[pc].inlined_at;
      return inlined.empty() ? PlaceOf(*writer.code, pc) : inlined.substr(0, inlined.find(','));
    };
    const std::string one = call(write.pc), two = call(apart->pc);
    finding.text = fmt::format(
        "a warp reads a line that two store instructions of another warp have written ({} and {}), "
        "and nothing orders them: they may arrive separately on any hardware",
        one, two);
    finding.advice =
        "if one flag covers the whole line, store the line, including the flag, with one "
        "instruction of the warp; otherwise check a flag in every 16 bytes";
  }
  Push(std::move(finding));
}

}  // namespace allranks::node::check
