// Findings: what an access is called, what order is missing, and what would create it. See
// node/finding.h.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "node/check/checker.h"
#include "node/special.h"

namespace allranks::node::check {
namespace {

// Findings that count against a program, and those that do not: neither can crowd out the other.
constexpr std::size_t kMostCounted = 256, kMostOthers = 64;

bool Counts(Finding::Kind kind) {
  return kind != Finding::Kind::kPortability && kind != Finding::Kind::kLeak;
}

const char* ScopeName(Scope scope) {
  static constexpr const char* kNames[] = {"cta", "cluster", "gpu", "sys"};
  return kNames[static_cast<int>(scope)];
}

const char* FenceName(Scope scope) {
  return scope == Scope::kSys   ? "__threadfence_system()"
         : scope == Scope::kCta ? "__threadfence_block()"
                                : "__threadfence()";
}

std::string Where(const Code& code, std::uint32_t pc) {
  const SourceLine& line = code.lines[pc];
  return line.line == 0 ? code.forms[pc] : fmt::format("{}:{}", line.file, line.line);
}

void Locate(const Code& code, std::uint32_t pc, FindingAccess* access) {
  if (pc >= code.forms.size()) return;
  access->form = code.forms[pc];
  access->file = code.lines[pc].file;
  access->line = code.lines[pc].line;
  access->inlined_at = code.lines[pc].inlined_at;
}

std::string Who(const FindingAccess& access) {
  if (access.rank < 0) return access.what;
  return fmt::format("rank {}'s {}", access.rank, access.what);
}

}  // namespace

std::vector<Finding> Checker::TakeFindings() {
  keys_.clear();
  seen_.clear();
  counted_ = others_ = 0;
  return std::exchange(findings_, {});
}

bool Checker::Full(Finding::Kind kind) const {
  return Counts(kind) ? counted_ >= kMostCounted : others_ >= kMostOthers;
}

bool Checker::Again(const SeenKey& key, Finding::Kind kind) {
  if (const auto it = seen_.find(key); it != seen_.end()) {
    ++findings_[it->second].count;
    return true;
  }
  return Full(kind);
}

void Checker::Push(Finding finding) {
  ++(Counts(finding.kind) ? counted_ : others_);
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

FindingAccess ShowThread(World& world, const Path& path, int lane, std::uint32_t pc,
                         const char* what) {
  const Cta& cta = *path.warp->cta;
  const Launch& launch = *cta.launch;
  FindingAccess access;
  access.what = what;
  access.rank = world.ProcessOf(launch.process).rank;
  access.device = launch.device->number;
  access.kernel = launch.code->name;
  access.block = cta.index;
  access.thread = path.warp->id * kLanes + static_cast<std::uint32_t>(lane);
  access.time = path.clock;
  Locate(*launch.code, pc, &access);
  return access;
}

FindingAccess Checker::Show(const Entry& entry, std::uint32_t lane, const Object& object,
                            std::uint64_t line) const {
  const AgentInfo& agent = agents_[entry.agent];
  FindingAccess access;
  access.write = entry.write();
  access.object = object.name;
  access.bytes = entry.width;
  const std::uint32_t within = lane >= entry.lane ? (lane - entry.lane) * entry.stride : 0;
  access.offset = line * kLineBytes + entry.first + within;
  access.rank = agent.info->rank;
  access.device = agent.info->device;
  if (agent.info->code == nullptr) {
    access.what = agent.info->what;
    if (positions_[entry.agent].native && entry.pc < host_places_.size()) {
      access.what += entry.write() ? " store" : " load";
      access.form = host_places_[entry.pc];
    }
    return access;
  }
  access.kernel = agent.info->kernel;
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
                                : std::hash<std::string>{}(info.what);
  };
  const SeenKey key = {place(earlier), earlier.pc, place(later), later.pc,
                       proxy                 ? 1u
                       : boundary != nullptr ? 5u
                                             : 0u};
  if (Again(key, finding.kind)) return;
  seen_.emplace(key, findings_.size());
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
  Explain(finding, earlier, later, cta, narrow, proxy);
  if (const Code* const reader = code(later);
      reader != nullptr && later.warp < kFirstCopyWarp && !later.write() &&
      reader->forms[later.pc].find(".nc") != std::string::npos) {
    finding.missing = "ld.global.nc is for bytes that nobody writes while the kernel runs";
    finding.advice = "read them by an ordinary load: no __ldg(), no const __restrict__ pointer";
  }
  if (boundary != nullptr && !proxy) {
    const Code& writer = *agents_[boundary->writer.agent].info->code;
    const std::string store = Where(writer, boundary->write_pc);
    finding.text = fmt::format(
        "{} of {} + {} relies on {} being visible to the whole system when the next kernel of its "
        "stream begins",
        Who(finding.accesses[0]), finding.accesses[0].object, finding.accesses[0].offset,
        Who(finding.accesses[1]));
    finding.missing = fmt::format(
        "the flag that the next kernel stores ({}, {}) is no release: PTX lets it be seen before "
        "what its stream did earlier",
        store, writer.forms[boundary->write_pc]);
    finding.advice = fmt::format(
        "at {} store the flag in {} with st.release.{}, or put {} before it in the same thread; "
        "harmless where the end of a kernel or copy flushes to the whole system",
        store, boundary->object, ScopeName(boundary->need), FenceName(boundary->need));
  }
  if (reductions) {
    finding.missing = "PTX promises atomicity among the bulk reductions of one device only";
    finding.advice =
        "harmless where a device's L2 performs the reductions of all peers; else let one device "
        "reduce, or use red with scope .sys";
  }
  Push(std::move(finding));
}

void Checker::Explain(Finding& finding, const Entry& earlier, const Entry& later,
                      const CtaClocks* cta, bool narrow, bool proxy) const {
  const FindingAccess& second = finding.accesses[0];
  const FindingAccess& first = finding.accesses[1];
  const Position& from = positions_[earlier.agent];
  const Position& to = positions_[later.agent];
  const Scope need = from.Common(to);
  const bool kernels =
      agents_[earlier.agent].info->code != nullptr && agents_[later.agent].info->code != nullptr;
  finding.text = fmt::format("{} of {} + {} and {} before it are not ordered", Who(second),
                             second.object, second.offset, Who(first));
  if (proxy) {
    finding.text = fmt::format("{} of {} + {} reads through the asynchronous proxy what {} wrote",
                               Who(second), second.object, second.offset, Who(first));
    finding.missing = "a fence between the generic and the asynchronous proxy";
    finding.advice =
        "after the stores and before the barrier that leads to the copy, let the writing threads "
        "execute fence.proxy.async";
    return;
  }
  if (narrow) {
    finding.text = fmt::format(
        "{} and {} of {} + {} are strong, but the scope of {} leaves the other thread out",
        Who(second), Who(first), second.object, second.offset,
        later.scope() < need && earlier.scope() < need ? "both"
        : later.scope() < need                         ? "the former"
                                                       : "the latter");
    finding.missing = fmt::format("scope .{} on both sides", ScopeName(need));
    const Entry& at = later.scope() < need ? later : earlier;
    const LaunchInfo& info = *agents_[at.agent].info;
    finding.advice = fmt::format("at {} use scope .{} instead of .{}",
                                 info.code != nullptr ? Where(*info.code, at.pc) : info.what,
                                 ScopeName(need), ScopeName(at.scope()));
    return;
  }
  if (from.native || to.native) {
    const FindingAccess& host = from.native ? first : second;
    const FindingAccess& other = from.native ? second : first;
    const bool reads = other.kernel.empty() ? !other.write : other.what == "load";
    finding.missing = fmt::format("the host has not waited for {} that {} these bytes",
                                  other.kernel.empty() ? "the " + other.what : "the kernel",
                                  reads ? "reads" : "writes");
    finding.advice = fmt::format(
        "before {}, call cudaStreamSynchronize() for the stream of the {}, or wait for an event "
        "recorded behind it{}",
        host.form.empty() ? "the host's access" : host.form,
        other.kernel.empty() ? other.what : "kernel",
        other.kernel.empty() ? ""
                             : "; or let the kernel release a flag (st.release.sys) behind the "
                               "access and poll that");
    return;
  }
  if (!kernels) {
    const bool judge = first.what == "judge" || second.what == "judge";
    finding.missing = judge ? "the call of that rank has not begun, or is over"
                            : "order between the stream's operation and the other access";
    finding.advice =
        judge ? "touch a peer's tensors only after it has said, in this call, that it has entered, "
                "and let it wait for your last access before it leaves"
              : "wait for an event, synchronise the stream, or put both into one stream";
    return;
  }
  // Somebody has read a flag, but learned nothing by it: that is the place to mend.
  if (cta != nullptr && earlier.agent != later.agent) {
    for (auto hint = cta->hints.rbegin(); hint != cta->hints.rend(); ++hint) {
      if (hint->writer.agent != earlier.agent) continue;
      const Code& writer = *agents_[earlier.agent].info->code;
      const Code& reader = *agents_[later.agent].info->code;
      const std::string store = Where(writer, hint->write_pc);
      const std::string load = Where(reader, hint->read_pc);
      finding.missing = fmt::format(
          "the flag that {} stores ({}, {}) and {} reads ({}, {}) does not order what is around it",
          Who(first), store, writer.forms[hint->write_pc], Who(second), load,
          reader.forms[hint->read_pc]);
      if (hint->narrow) {
        finding.advice = fmt::format("use scope .{} at {} and at {}, and in their fences",
                                     ScopeName(hint->need), store, load);
      } else if (!hint->released) {
        finding.advice = fmt::format(
            "the store at {} to {} is no release: use st.release.{} (or a release atomic), or put "
            "{} before it in the same thread",
            store, hint->object, ScopeName(hint->need), FenceName(hint->need));
        if (!hint->acquired) {
          finding.advice += fmt::format(
              "; and the load at {} is no acquire: use ld.acquire.{}, or "
              "put {} behind it",
              load, ScopeName(hint->need), FenceName(hint->need));
        }
      } else {
        finding.advice = fmt::format(
            "the load at {} is no acquire: use ld.acquire.{}, or put {} behind it in the same "
            "thread",
            load, ScopeName(hint->need), FenceName(hint->need));
      }
      return;
    }
  }
  if (earlier.warp >= kFirstCopyWarp) {
    finding.missing = "the copy has not been waited for by this thread";
    finding.advice = earlier.warp >= kMbarrierCopies
                         ? "wait for the mbarrier's phase before the bytes are touched"
                         : "wait for the copy's group, then meet at a barrier";
    return;
  }
  if (earlier.agent == later.agent && earlier.warp == later.warp) {
    finding.missing = "lanes of one warp are not ordered by themselves";
    finding.advice = "put __syncwarp() between the two accesses";
    return;
  }
  if (earlier.agent == later.agent) {
    finding.missing = "no barrier of the block lies between them";
    finding.advice = "put __syncthreads() between the two accesses";
    return;
  }
  const bool reads_first = !earlier.write();
  finding.missing =
      reads_first
          ? fmt::format("nothing tells {} that {} has read it", Who(second), Who(first))
          : fmt::format("nothing that {} reads says that {} is over", Who(second), Who(first));
  finding.advice = fmt::format(
      "let the earlier thread{} store a flag with st.release.{} after its access (behind a barrier "
      "if other threads of the block take part), and let the later one wait for it with "
      "ld.acquire.{} before",
      reads_first ? " acknowledge its reads: let it" : "", ScopeName(need), ScopeName(need));
}

void Checker::ReportSource(const Path& path, const CtaClocks::Source& source) {
  const Launch& launch = *path.warp->cta->launch;
  const SeenKey key = {reinterpret_cast<std::uintptr_t>(launch.code.get()), source.pc, 0, 0, 3};
  if (Again(key, Finding::Kind::kRace)) return;
  seen_.emplace(key, findings_.size());
  Finding finding;
  finding.kind = Finding::Kind::kRace;
  FindingAccess& copy =
      finding.accesses.emplace_back(ShowThread(world_, path, source.lane, source.pc, "bulk copy"));
  copy.object = "shared memory";
  finding.text = fmt::format(
      "{} may still read shared memory when its thread has left, and the block with it", Who(copy));
  finding.missing = "the thread that began the copy has not waited until its source was read";
  finding.advice = "put cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0 behind it";
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
      finding.accesses.emplace_back(ShowThread(world_, path, lane, path.pc, "load"));
  second.object = object.name;
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
      "that all elements come together is a fact of this hardware, not of PTX";
  finding.advice =
      "harmless where 16-byte accesses (and 128-byte packets) are single; else check a flag in "
      "every 8 bytes";
  if (apart != nullptr) {
    // A helper that stores has one line for both; the calls differ.
    const auto call = [&](std::uint32_t pc) {
      const std::string& inlined = writer.code->lines[pc].inlined_at;
      return inlined.empty() ? Where(*writer.code, pc) : inlined.substr(0, inlined.find(','));
    };
    const std::string one = call(write.pc), two = call(apart->pc);
    finding.text = fmt::format(
        "a warp reads a line that two store instructions of another warp have written ({} and {}), "
        "and nothing orders them: they may arrive apart on any hardware",
        one, two);
    finding.advice =
        "if one flag stands for the whole line, store the line, flag included, with one "
        "instruction of the warp; else check a flag in every 16 bytes";
  }
  Push(std::move(finding));
}

}  // namespace allranks::node::check
