// What order the two accesses of a finding miss, and what would create it. Where there is a chain
// of flags between them, remedy.cpp finds what is wrong with it.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "node/check/checker.h"
#include "node/check/host_remedy.h"
#include "node/check/remedy.h"

namespace allranks::node::check {
namespace {

bool TellsByFlags(const Code& code) {
  return std::any_of(code.memory.begin(), code.memory.end(), [](const MemoryOp& op) {
    return op.kind == MemoryOpKind::kStore && op.Strong();
  });
}

// A load of one place in a loop that may wait and writes nothing.
bool Polls(const Code& code, std::uint32_t pc) {
  if (code.ops[pc].kind != OpKind::kMemory) return false;
  const MemoryOp& load = code.memory[code.ops[pc].aux];
  return std::any_of(code.spins.begin(), code.spins.end(), [&](const SpinCode& loop) {
    if (pc < loop.head || pc > loop.branch) return false;
    for (std::uint32_t at = loop.head; at <= loop.branch; ++at) {
      const Op& op = code.ops[at];
      if (op.kind == OpKind::kMemory && code.memory[op.aux].kind != MemoryOpKind::kLoad)
        return false;
    }
    return std::none_of(
        loop.carried.begin(), loop.carried.end(),
        [&](const SpinCode::Carried& carried) { return carried.slot == load.address; });
  });
}

bool WaitsForGrids(const Code& code) {
  return std::any_of(code.ops.begin(), code.ops.end(),
                     [](const Op& op) { return op.kind == OpKind::kGridWait && op.imm == 0; });
}

}  // namespace

bool WaitsForFlags(const Code& code) {
  return std::any_of(code.memory.begin(), code.memory.end(), [](const MemoryOp& op) {
    return op.kind == MemoryOpKind::kLoad && op.Strong();
  });
}

// One pair of accesses. Each function is for one kind of pair: it tells, or it is false.
class Explanation {
 public:
  Explanation(const Checker& checker, const Entry& earlier, const Entry& later, Finding* finding)
      : checker_(checker),
        earlier_(earlier),
        later_(later),
        finding_(*finding),
        second_(finding->accesses[0]),
        first_(finding->accesses[1]),
        from_(checker.positions_[earlier.agent]),
        to_(checker.positions_[later.agent]),
        need_(from_.Common(to_)),
        before_(*checker.agents_[earlier.agent].info),
        after_(*checker.agents_[later.agent].info),
        launches_(checker.agents_[earlier.agent].info != checker.agents_[later.agent].info) {}

  void Proxy();
  void Narrow();
  bool Host(std::uint32_t lane, std::uint32_t later_lane, const CtaClocks* cta);  // of host code
  // An access of the judge, before or behind a rank's call.
  bool Call(std::uint32_t lane, std::uint32_t later_lane, const CtaClocks* cta);
  // One of a stream's operation.
  bool Operation(std::uint32_t lane, std::uint32_t later_lane, const CtaClocks* cta);
  bool Overlap();  // two kernels of one stream
  bool Flag(std::uint32_t lane, std::uint32_t later_lane, const CtaClocks* cta);
  bool Copy();      // a copy that is not waited for
  bool Block();     // threads of one block
  bool WeakFlag();  // one side of a flag is accessed as if it were data
  bool Widths();
  bool SequenceLock();
  void Nothing();  // that could be meant to order them

 private:
  bool SizesDiffer() const {
    return earlier_.strong() && later_.strong() && earlier_.element() != later_.element();
  }
  bool Announced();
  bool OfDataOnly(const Entry& weak) const;
  // A flag that leads through a host. False: there is none, or it is right.
  bool HostFlag(std::uint32_t lane, std::uint32_t later_lane, const CtaClocks* cta);
  bool PolledByKernel();
  bool CopyTooLate();
  const LaunchInfo* NeverWaits(const ChainPlace& was, const ChainPlace& is) const;
  void Change(const Entry& at, Edit::Action action, Edit::By by, std::string text) {
    AddEdit(EditAt(*checker_.agents_[at.agent].info->code, at.pc, action, by, std::move(text)),
            &finding_);
  }
  // By a host or a node between streams: the one given first comes first.
  void Order() { OrderOperations(before_, after_, &finding_); }
  void ByEvent(std::string_view why);

  const Checker& checker_;
  const Entry &earlier_, &later_;
  Finding& finding_;
  const FindingAccess &second_, &first_;
  const Position &from_, &to_;
  const Scope need_;
  const LaunchInfo &before_, &after_;
  const bool launches_;
};

void Checker::Explain(Finding& finding, const Entry& earlier, std::uint32_t lane,
                      const Entry& later, std::uint32_t later_lane, const CtaClocks* cta,
                      bool narrow, bool proxy) const {
  Explanation pair(*this, earlier, later, &finding);
  if (proxy) return pair.Proxy();
  if (narrow) return pair.Narrow();
  const FindingAccess& second = finding.accesses[0];
  finding.text = fmt::format("{} of {} + {} and {} before it are not ordered", Who(second),
                             second.object, second.offset, Who(finding.accesses[1]));
  if (pair.Host(lane, later_lane, cta) || pair.Call(lane, later_lane, cta) ||
      pair.Operation(lane, later_lane, cta) || pair.Overlap() || pair.Flag(lane, later_lane, cta) ||
      pair.Copy() || pair.Widths() || pair.Block() || pair.WeakFlag() || pair.SequenceLock()) {
    return;
  }
  pair.Nothing();
}

void Explanation::Proxy() {
  finding_.text = fmt::format("{} of {} + {} reads through the asynchronous proxy what {} wrote",
                              Who(second_), second_.object, second_.offset, Who(first_));
  finding_.missing = "a fence between the generic and the asynchronous proxy";
  const char* fence = "asm volatile(\"fence.proxy.async;\" ::: \"memory\");";
  if (earlier_.agent == later_.agent) {
    finding_.advice =
        "let the writing threads execute fence.proxy.async after the stores and before the barrier "
        "that precedes the copy";
    Change(earlier_, Edit::Action::kInsertAfter, Edit::By::kThread, fence);
  } else {
    finding_.advice =
        "let the thread that starts the copy execute fence.proxy.async before the copy and after "
        "the synchronisation with the stores";
    Change(later_, Edit::Action::kInsertBefore, Edit::By::kThread, fence);
  }
}

void Explanation::Narrow() {
  finding_.text = fmt::format(
      "{} and {} of {} + {} are strong, but the scope of {} does not include the other thread",
      Who(second_), Who(first_), second_.object, second_.offset,
      later_.scope() < need_ && earlier_.scope() < need_ ? "both"
      : later_.scope() < need_                           ? "the former"
                                                         : "the latter");
  finding_.missing = fmt::format("scope .{} on both sides", ScopeName(need_));
  for (const Entry* at : {&later_, &earlier_}) {
    if (at->scope() >= need_) continue;
    const LaunchInfo& info = *checker_.agents_[at->agent].info;
    const std::string place = info.code != nullptr ? PlaceOf(*info.code, at->pc) : info.what;
    if (!finding_.advice.empty() && finding_.advice.find(place) != std::string::npos) continue;
    finding_.advice +=
        fmt::format("{}at {} use scope .{} instead of .{}", finding_.advice.empty() ? "" : "; and ",
                    place, ScopeName(need_), ScopeName(at->scope()));
    if (info.code == nullptr) continue;
    Change(*at, Edit::Action::kReplace, Edit::By::kThread, ScopeName(need_));
    if (!finding_.edits.empty()) finding_.edits.back().from = ScopeName(at->scope());
  }
}

bool Explanation::HostFlag(std::uint32_t lane, std::uint32_t later_lane, const CtaClocks* cta) {
  RemedySearch search(checker_, earlier_, lane, later_, later_lane,
                      cta != nullptr ? cta->tick : Tick{0});
  if (before_.code != nullptr)
    return (to_.native || before_.op < after_.op) && search.TellToHost(&finding_);
  return after_.code != nullptr && search.TellFromHost(&finding_);
}

// The host stores a word for which a loop of the kernel waits by weak loads.
bool Explanation::PolledByKernel() {
  const Entry& store = from_.native ? earlier_ : later_;
  const Entry& load = from_.native ? later_ : earlier_;
  const LaunchInfo& kernel = from_.native ? after_ : before_;
  if (kernel.code == nullptr || !store.write() || load.write() || load.strong() ||
      load.warp >= kFirstCopyWarp || !Polls(*kernel.code, load.pc) ||
      kernel.code->memory[kernel.code->ops[load.pc].aux].count > 1)
    return false;
  const std::string place = PlaceOf(*kernel.code, load.pc);
  finding_.missing =
      fmt::format("the kernel waits for the host's store by the load at {}, which is weak", place);
  finding_.advice = fmt::format(
      "make the load at {} ld.acquire.sys, or ld.relaxed.sys (or volatile) with "
      "__threadfence_system() after it",
      place);
  Change(load, Edit::Action::kReplace, Edit::By::kThread, "acquire.sys");
  if (!finding_.edits.empty()) finding_.edits.back().from = "weak";
  return true;
}

bool Explanation::Host(std::uint32_t lane, std::uint32_t later_lane, const CtaClocks* cta) {
  if (!from_.native && !to_.native) return false;
  if (PolledByKernel() || HostFlag(lane, later_lane, cta)) return true;
  const FindingAccess& host = from_.native ? first_ : second_;
  const FindingAccess& other = from_.native ? second_ : first_;
  const bool reads = other.kernel.empty() ? !other.write : other.what == "load";
  finding_.missing = fmt::format("the host has not waited for {} that {} these bytes",
                                 other.kernel.empty() ? "the " + other.what : "the kernel",
                                 reads ? "reads" : "writes");
  finding_.advice = fmt::format(
      "before {}, call cudaStreamSynchronize() for the stream of the {}, or wait for an event "
      "recorded after it{}",
      host.site.frames.empty() ? "the host's access" : host.site.Place(),
      other.kernel.empty() ? other.what : "kernel",
      other.kernel.empty() ? ""
                           : "; or let the kernel release a flag (st.release.sys) after the "
                             "access and poll the flag");
  OrderHost(host, other, &finding_);
  return true;
}

// The flags by which ranks say that they have entered, or that they need nothing any more, order
// the accesses of the judge as well.
bool Explanation::Call(std::uint32_t lane, std::uint32_t later_lane, const CtaClocks* cta) {
  if (first_.what != "judge" && second_.what != "judge") return false;
  const Tick tick = cta != nullptr ? cta->tick : 0;
  RemedySearch search(checker_, earlier_, lane, later_, later_lane, tick);
  if (search.Run()) {
    finding_.missing = search.Missing(Who(first_), Who(second_));
    search.Tell(&finding_);
    return true;
  }
  if (search.TellLoneWait(&finding_)) return true;
  finding_.missing = "the call of that rank has not started, or has ended";
  finding_.advice =
      "access a peer's tensors only after it has signalled that it has entered this call, and let "
      "it wait for your last access before it leaves";
  return true;
}

// The host has made the copy after a flag of this kernel, which meanwhile goes on.
bool Explanation::CopyTooLate() {
  const ClockRef& known = checker_.agents_[later_.agent].known;
  if (before_.code == nullptr || known == nullptr || known->Of(earlier_.agent) == nullptr ||
      !TellsByFlags(*before_.code))
    return false;
  finding_.missing = fmt::format(
      "the host makes the {} after a flag of the kernel, and the kernel does not wait until the {} "
      "is complete",
      after_.what, after_.what);
  finding_.advice = fmt::format(
      "before {}, let the kernel wait (ld.acquire.sys) for a flag that the host sets after it has "
      "waited for the {} (cudaStreamSynchronize)",
      PlaceOf(*before_.code, earlier_.pc), after_.what);
  return true;
}

bool Explanation::Operation(std::uint32_t lane, std::uint32_t later_lane, const CtaClocks* cta) {
  if (before_.code != nullptr && after_.code != nullptr) return false;
  const bool host = first_.what == "host" || second_.what == "host";
  const LaunchInfo& kernel = before_.code != nullptr ? before_ : after_;
  const Entry& access = before_.code != nullptr ? earlier_ : later_;
  // Atomics of a kernel that waits for nothing are of data.
  const bool flag = kernel.code != nullptr && access.strong() &&
                    (!access.atomic() || WaitsForFlags(*kernel.code));
  if (flag && !host) {
    finding_.missing = fmt::format(
        "{} are weak accesses: they cannot write or read a flag that "
        "kernels use at the same time",
        before_.code != nullptr ? second_.what : first_.what);
    finding_.advice =
        "write the flag with cuStreamWriteValue32 or in a kernel; or start the kernels that use it "
        "after an event that is recorded after the operation";
    const FindingAccess& operation = before_.code != nullptr ? second_ : first_;
    if (!ResetBeforeUse(operation, before_.code != nullptr ? first_ : second_, access.atomic(),
                        &finding_))
      WriteFlagByStream(operation, &finding_);
  } else if (kernel.code != nullptr && !host &&
             (HostFlag(lane, later_lane, cta) || CopyTooLate())) {
    // The finding says it.
  } else if (kernel.code != nullptr && !host && WaitsForFlags(*kernel.code)) {
    finding_.missing = "the kernel waits for a flag, which does not announce the copy";
    finding_.advice =
        "set the flag after the copy: in its stream (cuStreamWriteValue32), or on the host after "
        "it "
        "has waited for the copy (cudaStreamSynchronize); if the copy follows the kernel, let its "
        "stream wait for an event";
    // No event: where the kernel waits for the copy, the copy must not wait for the kernel.
    OrderFlag(before_.code != nullptr ? second_ : first_,
              checker_.SiteOf(checker_.agents_[access.agent].told), &finding_);
  } else if (host) {
    finding_.missing = "order between the host's access and the other access";
    finding_.advice =
        "let the host wait for the stream or an event before it accesses the bytes, or "
        "for a flag that a kernel releases with scope .sys";
  } else {
    finding_.missing = "order between the stream's operation and the other access";
    const auto name = [](const LaunchInfo& info) {
      return fmt::format("the {} of stream {}", info.what, info.stream);
    };
    finding_.advice = fmt::format(
        "record an event after {} and let the stream of {} wait for it, or put both into one "
        "stream",
        name(before_), name(after_));
    Order();
  }
  return true;
}

bool Explanation::Overlap() {
  const ChainPlace& was = checker_.places_.of[earlier_.agent];
  const ChainPlace& is = checker_.places_.of[later_.agent];
  if (!launches_ || was.chain != is.chain || was.number == is.number) return false;
  // One stream, and still not ordered: the later kernel has begun before the earlier one's end.
  const LaunchInfo* hasty = &after_;
  if (WaitsForGrids(*after_.code)) {
    if (const LaunchInfo* between = NeverWaits(was, is)) hasty = between;
  }
  finding_.missing =
      hasty == &after_
          ? "the later kernel may start before the earlier kernel of its stream has completed, and "
            "this thread has not waited for it"
          : fmt::format(
                "{} between the two never waits for the kernel before it, so its completion "
                "does not imply that the earlier kernel has completed",
                hasty->kernel);
  finding_.advice = fmt::format(
      "let all threads execute cudaGridDependencySynchronize() (griddepcontrol.wait) at the "
      "beginning of {}",
      hasty == &after_ ? "the later kernel" : hasty->code->name);
  Edit made;
  made.by = Edit::By::kBlock;
  made.text = "cudaGridDependencySynchronize();";
  made.at = EditAt(*after_.code, later_.pc, made.action, made.by, "").at;
  if (!made.at.empty()) {
    made.at = {{made.at.back().file, 0, 0, hasty->kernel}};
    finding_.edits.push_back(std::move(made));
  }
  return true;
}

// The last kernel of the stream between the two that has no griddepcontrol.wait.
const LaunchInfo* Explanation::NeverWaits(const ChainPlace& was, const ChainPlace& is) const {
  const LaunchInfo* found = nullptr;
  std::uint32_t last = was.number;
  for (Agent agent = 1; agent < checker_.agents_.size(); ++agent) {
    const ChainPlace& at = checker_.places_.of[agent];
    const LaunchInfo* info = checker_.agents_[agent].info.get();
    if (at.chain != is.chain || at.number <= last || at.number >= is.number || info == nullptr ||
        info->code == nullptr || WaitsForGrids(*info->code)) {
      continue;
    }
    found = info;
    last = at.number;
  }
  return found;
}

bool Explanation::Flag(std::uint32_t lane, std::uint32_t later_lane, const CtaClocks* cta) {
  if (cta == nullptr) return false;
  RemedySearch search(checker_, earlier_, lane, later_, later_lane, cta->tick, first_.offset);
  if (search.Run()) {
    finding_.missing = search.Missing(Who(first_), Who(second_));
    search.Tell(&finding_);
    return true;
  }
  return earlier_.agent != later_.agent && earlier_.strong() == later_.strong() && !SizesDiffer() &&
         (search.TellMutualFlags(&finding_) || search.TellLoneWait(&finding_) ||
          search.TellEarly(&finding_));
}

bool Explanation::Copy() {
  if (earlier_.warp < kFirstCopyWarp) return false;
  // What another block reads too early is no matter of its completion.
  if (earlier_.agent != later_.agent && !earlier_.write()) return false;
  finding_.missing = "this thread has not waited for the copy";
  finding_.advice = earlier_.warp >= kMbarrierCopies
                        ? "wait for the mbarrier's phase before the access"
                        : "wait for the copy's group, then synchronise with a barrier";
  if (earlier_.warp >= kMbarrierCopies) {
    if (earlier_.agent == later_.agent && later_.warp < kFirstCopyWarp)
      MoveAfterPhase(*after_.code, earlier_.pc, later_.pc, &finding_);
    return true;
  }
  if (earlier_.warp >= kBulkReads) {
    const bool reads = earlier_.warp < kBulkWrites;
    Change(earlier_, Edit::Action::kInsertAfter, Edit::By::kThread,
           fmt::format("asm volatile(\"cp.async.bulk.commit_group; cp.async.bulk.wait_group{} 0;\" "
                       "::: \"memory\");",
                       reads ? ".read" : ""));
    // Only the thread that has started the copy can wait for it.
    if (earlier_.agent == later_.agent && later_.warp < kFirstCopyWarp)
      Change(earlier_, Edit::Action::kInsertAfter, Edit::By::kBlock, "__syncthreads();");
    return true;
  }
  Change(later_, Edit::Action::kInsertBefore, Edit::By::kBlock,
         "asm volatile(\"cp.async.wait_all;\" ::: \"memory\"); __syncthreads();");
  return true;
}

bool Explanation::Block() {
  if (earlier_.agent != later_.agent) return false;
  if (ReleaseAtCluster(*after_.code, earlier_.pc, later_.pc, &finding_)) return true;
  if (later_.warp >= kMbarrierCopies) {
    finding_.missing = fmt::format("nothing orders {} before the start of the copy", Who(first_));
    finding_.advice =
        "let the threads arrive on an mbarrier after their accesses, and let the thread that "
        "starts "
        "the copy wait for its phase first";
  } else if (earlier_.warp == later_.warp) {
    finding_.missing = "lanes of one warp have no implicit order";
    finding_.advice = "put __syncwarp() between the two accesses";
    Change(later_, Edit::Action::kInsertBefore, Edit::By::kWarp, "__syncwarp();");
  } else {
    finding_.missing = "no barrier of the block is between them";
    finding_.advice = "put __syncthreads() between the two accesses";
    Change(later_, Edit::Action::kInsertBefore, Edit::By::kBlock, "__syncthreads();");
  }
  return true;
}

// A kernel without flags shares data with another kernel of its process, which happens to access
// them by strong operations: neither of the two waits for the bytes to change.
bool Explanation::OfDataOnly(const Entry& weak) const {
  const Entry& strong = &weak == &earlier_ ? later_ : earlier_;
  const auto polls = [&](const Entry& at) {
    return !at.write() && Polls(*checker_.agents_[at.agent].info->code, at.pc);
  };
  const Code& code = *checker_.agents_[weak.agent].info->code;
  return launches_ && before_.rank == after_.rank && !WaitsForFlags(code) && !TellsByFlags(code) &&
         !polls(weak) && !polls(strong);
}

bool Explanation::WeakFlag() {
  if (earlier_.strong() == later_.strong() || later_.warp >= kFirstCopyWarp || earlier_.atomic() ||
      later_.atomic())
    return false;
  const Entry& weak = earlier_.strong() ? later_ : earlier_;
  const Code& code = *checker_.agents_[weak.agent].info->code;
  if (code.ops[weak.pc].kind != OpKind::kMemory) return false;  // st.bulk, stmatrix: always weak
  if (RemedySearch(checker_, earlier_, 0, later_, 0, 0).ResetsForOthers()) {
    finding_.missing = fmt::format("other threads may still wait for the flag that is reset at {}",
                                   PlaceOf(code, weak.pc));
    finding_.advice =
        "let the thread that resets the flag wait until all others have read it, and reset it with "
        "a strong store";
    return true;
  }
  if (OfDataOnly(weak)) {
    finding_.missing = fmt::format("nothing orders {} after {}", Who(second_), Who(first_));
    ByEvent("the kernels have no order");
    return true;
  }
  finding_.missing = fmt::format("the {} at {} is weak, the other access is not",
                                 weak.write() ? "store" : "load", PlaceOf(code, weak.pc));
  // A flag tells of something: what is around it needs its order as well.
  const char* order = weak.write() ? "release" : "acquire";
  finding_.advice =
      fmt::format("make it {}.{}.{}, or {}.relaxed.{} (or volatile) with {} {} it",
                  weak.write() ? "st" : "ld", order, ScopeName(need_), weak.write() ? "st" : "ld",
                  ScopeName(need_), FenceName(need_), weak.write() ? "before" : "after");
  const bool vector = code.memory[code.ops[weak.pc].aux].count > 1;
  Change(weak, Edit::Action::kReplace, Edit::By::kThread,
         fmt::format("{}.{}", vector ? "relaxed" : order, ScopeName(need_)));
  if (finding_.edits.empty()) return true;
  finding_.edits.back().from = "weak";
  if (!vector) return true;
  Change(weak, weak.write() ? Edit::Action::kInsertBefore : Edit::Action::kInsertAfter,
         Edit::By::kThread, fmt::format("{};", FenceName(need_)));
  return true;
}

bool Explanation::Widths() {
  if (!SizesDiffer()) return false;
  finding_.missing = fmt::format(
      "strong accesses of {} and of {} bytes: accesses of different sizes do "
      "not synchronise",
      later_.element(), earlier_.element());
  finding_.advice =
      fmt::format("access the bytes with the same width at {} and {}",
                  PlaceOf(*after_.code, later_.pc), PlaceOf(*before_.code, earlier_.pc));
  return true;
}

// Readers that look again whether they were disturbed (a sequence lock): nobody waits for them, and
// they acknowledge nothing.
bool Explanation::SequenceLock() {
  if (earlier_.write() || !launches_ || WaitsForFlags(*after_.code) ||
      !TellsByFlags(*after_.code) || TellsByFlags(*before_.code) || !WaitsForFlags(*before_.code) ||
      earlier_.strong() || later_.strong())
    return false;
  finding_.missing = fmt::format(
      "nothing that {} reads shows that {} is complete, and its kernel does "
      "not wait",
      Who(second_), Who(first_));
  finding_.advice = fmt::format(
      "if readers check afterwards whether the data has changed, make the load at {} "
      "ld.relaxed.{} and the store at {} st.relaxed.{}; otherwise let the writer wait for its "
      "readers",
      PlaceOf(*before_.code, earlier_.pc), ScopeName(need_), PlaceOf(*after_.code, later_.pc),
      ScopeName(need_));
  for (const Entry* at : {&earlier_, &later_}) {
    Change(*at, Edit::Action::kReplace, Edit::By::kThread,
           fmt::format("relaxed.{}", ScopeName(need_)));
    if (!finding_.edits.empty()) finding_.edits.back().from = "weak";
  }
  return true;
}

// A third kernel stores the flag that the later thread has read, and does not wait for the earlier
// kernel.
bool Explanation::Announced() {
  const RemedySearch search(checker_, earlier_, 0, later_, 0, 0);
  const LaunchInfo* const teller = launches_ ? search.Announcer() : nullptr;
  if (teller == nullptr || teller->site == 0) return false;
  FindingAccess launch;
  launch.what = "flag";
  launch.rank = teller->rank;
  launch.alone = first_.alone;
  launch.device = teller->device;
  launch.kernel = teller->kernel;
  launch.site = checker_.SiteOf(teller->site);
  Finding order;
  order.accesses = {launch, first_};
  OrderOperations(before_, *teller, &order);
  if (order.edits.empty()) return false;
  finding_.advice = fmt::format(
      "the kernel launched at {} stores the flag that {} has waited for, and nothing orders it "
      "after "
      "the one launched at {}: record an event after the latter and let the stream of the former "
      "wait for it",
      launch.site.Place(), Who(second_), first_.site.Place());
  finding_.edits = std::move(order.edits);
  return true;
}

void Explanation::ByEvent(std::string_view why) {
  finding_.advice = fmt::format(
      "{}: record an event after the kernel of {}, and let the stream of the kernel of {} wait for "
      "it",
      why, Who(first_), Who(second_));
  Order();
}

void Explanation::Nothing() {
  const bool reads = WaitsForFlags(*after_.code) || WaitsForFlags(*before_.code);
  const bool reads_first = !earlier_.write();
  finding_.missing = reads_first
                         ? fmt::format("nothing orders {} after {}", Who(second_), Who(first_))
                         : fmt::format("nothing that {} reads shows that {} is complete",
                                       Who(second_), Who(first_));
  if (launches_ && !reads) {
    ByEvent("the kernels have no order and wait for no flag");
    return;
  }
  if (!launches_ && (need_ == Scope::kCluster || before_.cooperative)) {
    const bool cluster = need_ == Scope::kCluster;
    finding_.advice = fmt::format(
        "synchronise all threads of the {} between the two accesses ({})",
        cluster ? "cluster" : "grid",
        cluster ? "barrier.cluster.arrive.release, barrier.cluster.wait.acquire" : "grid.sync()");
    if (cluster && (MoveAfterCluster(*after_.code, earlier_.pc, later_.pc, &finding_) ||
                    ReleaseAtCluster(*after_.code, earlier_.pc, later_.pc, &finding_))) {
      return;
    }
    // Of two rounds: as soon as the first access is over.
    const bool rounds = Before(*after_.code, later_.pc, earlier_.pc) && before_.code == after_.code;
    const Entry& at = rounds ? earlier_ : later_;
    const auto action = rounds ? Edit::Action::kInsertAfter : Edit::Action::kInsertBefore;
    if (cluster) {
      Change(at, action, Edit::By::kBlock, kClusterBarrier);
    } else {
      Change(at, action, Edit::By::kGrid, "cooperative_groups::this_grid().sync();");
    }
    return;
  }
  if (Announced()) return;
  finding_.advice = fmt::format(
      "let the earlier thread{} store a flag with st.release.{} after its access (after a barrier "
      "if other threads of the block take part), and let the later thread first wait for it with "
      "ld.acquire.{}",
      reads_first ? " acknowledge its reads: let it" : "", ScopeName(need_), ScopeName(need_));
  // Of one round they may wait for each other: only what comes a round later can be held back.
  if (launches_ && (before_.code == after_.code
                        ? RemedySearch(checker_, earlier_, 0, later_, 0, 0).OfDifferentRounds()
                        : !WaitsForFlags(*after_.code) &&
                              !(WaitsForFlags(*before_.code) && TellsByFlags(*after_.code)))) {
    finding_.advice +=
        "; or let the host wait for the earlier launch before it starts the later one";
    if (before_.process != after_.process) return;
    Order();
    if (!finding_.edits.empty()) finding_.edits.back().text = "cudaDeviceSynchronize";
  }
}

}  // namespace allranks::node::check
