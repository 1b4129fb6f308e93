// The windows of a judged run: calls between two actions of the node in the ranks' streams, and
// what is reported of them. judged.h has the theory.
#include <algorithm>
#include <bit>
#include <cstring>
#include <ctime>
#include <map>
#include <tuple>
#include <utility>

#include "node/findings.h"
#include "node/late_wakes.h"
#include "server/judged.h"

namespace allranks::server {

using node::Hosts;
using node::Status;

namespace {

std::uint64_t CpuMicroseconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(used.tv_nsec) / 1000;
}

constexpr std::uint32_t kMaxCalls = 4'096;
constexpr std::uint64_t kPage = 4'096;
// Inputs and outputs of this size are not copied, but mapped: they exist once.
constexpr std::uint64_t kMappedBytes = 4 << 20;
// Windows are drawn to begin behind multiples of this, some nine seconds: far more than happens
// between them, so that it does not matter when a window is asked for.
constexpr node::Time kGrid = node::Time{1} << 43;
constexpr node::Time kLatest = kGrid / 2;  // behind it

// Drawn times are multiples of the buckets in which capacity is given out
// (node/hardware/servers.h): so what happens in a window does not depend on when it begins, and the
// time at which a rank enters a call does not tell whether it was delayed.
node::Time Whole(node::Time drawn, const node::Profile& profile) {
  const node::Time bucket = profile.CyclesToTime(profile.time.bucket_cycles);
  const auto unit = static_cast<node::Time>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<node::Time>(bucket, 2))));
  return drawn / unit * unit;
}

std::size_t At(std::uint32_t call, std::int32_t rank, std::size_t world) {
  return call * world + static_cast<std::size_t>(rank);
}

bool Within(const wire::JudgeBytes& part, const std::vector<wire::JudgeTensor>& tensors,
            std::size_t file) {
  return part.tensor < tensors.size() && part.bytes <= tensors[part.tensor].bytes &&
         part.place <= file && part.bytes <= file - part.place;
}

// 0: the window is not skewed. In one that is, waits end late, too; the judge has drawn the delays,
// so nobody can foresee which.
std::uint64_t SkewOf(const wire::JudgeRun& run) {
  std::uint64_t skew = 0;
  for (const wire::JudgeCall& call : run.by_rank)
    skew = skew * 31 + static_cast<std::uint64_t>(call.delay_ps);
  return skew;
}

void SetLateWakes(node::Machine& machine, std::uint64_t seed, node::Time from) {
  if (auto* late_wakes = machine.late_wakes()) late_wakes->SetLateWakes(seed, from);
}

// Times count from the window's beginning, as all of its times do.
wire::JudgeFinding OnWire(node::Finding&& finding, node::Time begin) {
  wire::JudgeFinding made;
  made.kind = static_cast<std::uint8_t>(finding.kind);
  made.text = std::move(finding.text);
  made.missing = std::move(finding.missing);
  made.advice = std::move(finding.advice);
  made.count = finding.count;
  made.schedule = finding.schedule;
  made.pairs = finding.pairs;
  for (node::FindingPair& pair : finding.also)
    made.also.push_back({.later = std::move(pair.later), .earlier = std::move(pair.earlier)});
  const auto places = [](std::vector<node::Edit::Place>& from) {
    std::vector<wire::JudgePlace> to;
    for (node::Edit::Place& place : from)
      to.push_back({.file = std::move(place.file),
                    .line = place.line,
                    .column = place.column,
                    .function = std::move(place.function)});
    return to;
  };
  for (node::Edit& edit : finding.edits)
    made.edits.push_back({.action = static_cast<std::uint8_t>(edit.action),
                          .by = static_cast<std::uint8_t>(edit.by),
                          .at = places(edit.at),
                          .text = std::move(edit.text),
                          .from = std::move(edit.from),
                          .form = std::move(edit.form),
                          .to = places(edit.to)});
  for (node::FindingAccess& access : finding.accesses) {
    made.accesses.push_back({.what = std::move(access.what),
                             .form = std::move(access.form),
                             .rank = access.rank,
                             .device = access.device,
                             .kernel = std::move(access.kernel),
                             .block = {access.block.x, access.block.y, access.block.z},
                             .thread = access.thread,
                             .file = std::move(access.file),
                             .line = access.line,
                             .inlined_at = std::move(access.inlined_at),
                             .object = std::move(access.object),
                             .offset = access.offset,
                             .bytes = access.bytes,
                             .write = access.write,
                             .time_ps = access.time == 0 ? 0 : access.time - begin});
  }
  return made;
}

// Large memory is gone through in pieces of whole words.
constexpr std::uint64_t kPiece = 4 << 20;

template <class F>
void ForPieces(std::uint64_t bytes, F visit) {
  for (std::uint64_t at = 0; at < bytes; at += kPiece) visit(at, std::min(kPiece, bytes - at));
}

// Twice as much with each step.
void Repeat(std::uint32_t word, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  std::size_t done = std::min(sizeof word, bytes.size());
  std::memcpy(bytes.data(), &word, done);
  for (; done < bytes.size(); done += std::min(done, bytes.size() - done))
    std::memcpy(bytes.data() + done, bytes.data(), std::min(done, bytes.size() - done));
}

// What of these bytes can be mapped instead of copied; of small memory nothing.
node::FileBytes WholePages(int fd, std::uint64_t place, std::uint64_t bytes) {
  const std::uint64_t whole = bytes < kMappedBytes ? 0 : bytes / kPage * kPage;
  return {.fd = fd, .offset = place, .size = whole};
}

// What the links have carried since `before`.
std::vector<wire::JudgeLink> Since(const std::vector<node::LinkRecord>& before,
                                   const std::vector<node::LinkRecord>& after) {
  using Key = std::tuple<std::string, std::string, std::string>;
  std::map<Key, const node::DirectionRecord*> old;
  for (const node::LinkRecord& link : before)
    for (const node::DirectionRecord& way : link.directions)
      old[{link.name, way.from, way.to}] = &way;
  std::vector<wire::JudgeLink> carried;
  for (const node::LinkRecord& link : after) {
    for (const node::DirectionRecord& way : link.directions) {
      wire::JudgeLink entry;
      entry.name = link.name;
      entry.kind = link.kind;
      entry.from = way.from;
      entry.to = way.to;
      entry.bytes.assign(way.bytes.begin(), way.bytes.end());
      entry.wire_bytes = way.wire_bytes;
      if (const auto known = old.find({link.name, way.from, way.to}); known != old.end()) {
        for (std::size_t m = 0; m < node::kMovers; ++m) entry.bytes[m] -= known->second->bytes[m];
        entry.wire_bytes -= known->second->wire_bytes;
      }
      if (entry.wire_bytes != 0) carried.push_back(std::move(entry));
    }
  }
  return carried;
}

}  // namespace

bool Judged::Valid(const wire::JudgeRun& run) const {
  if (run.case_index >= plan_.cases.size() || run.calls > kMaxCalls ||
      run.by_rank.size() != run.calls * ranks_.size())
    return false;
  const int schedules = (run.schedule != 0) + (run.directed != 0) + run.places;
  if (run.check ? desk_.checking() == nullptr || schedules > 1 : schedules != 0) return false;
  if (run.directed != 0 && run.directed < node::kDirected) return false;
  if (run.sample != 0 && (!run.check || run.directed != 0)) return false;
  // Nothing but what goes on may come after a run that has stayed.
  if (run.goes_on != stayed_ || (run.stays && plan_.window != wire::JudgeWindow::kGraph))
    return false;
  if (run.begin_ps < 0 || run.begin_ps > kLatest || run.disturbed_from_ps < 0 ||
      run.disturbed_from_ps > kLatest)
    return false;
  const auto& tensors = plan_.cases[run.case_index].tensors;
  for (const wire::JudgeCall& call : run.by_rank) {
    if (call.delay_ps < 0 || call.delay_ps > node::Ms(10'000)) return false;
    for (const wire::JudgeBytes& part : call.draw)
      if (!Within(part, tensors, options_.inputs.size())) return false;
    for (const wire::JudgeBytes& part : call.keep)
      if (!Within(part, tensors, options_.outputs.size())) return false;
    for (const wire::JudgePoison& poison : call.poison)
      if (poison.tensor >= tensors.size()) return false;
  }
  return true;
}

void Judged::Start(std::uint64_t sequence, wire::JudgeRun request) {
  Confine(request.case_index);
  Window& run = run_.emplace(Window{});
  run.sequence = sequence;
  run.request = std::move(request);
  // When ranks have ended is a matter of wall time.
  run.begin = (std::max(machine_.now(), hosts_.now()) / kGrid + 1) * kGrid +
              Whole(run.request.begin_ps, machine_.profile());
  const Time from = run.request.disturbed_from_ps;
  run.disturbed = from == 0 ? 0 : run.begin + from;
  run.cpu_us = CpuMicroseconds();
  run.reply.opened_ps.assign(run.request.by_rank.size(), -1);
  run.reply.closed_ps.assign(run.request.by_rank.size(), -1);
  run.reply.changed.assign(run.request.by_rank.size(), 0);
  run.closed.assign(run.request.calls, 0);
  const node::Stats& stats = machine_.stats();
  run.links = stats.links;
  run.moved = stats.movers;
  run.instructions = stats.thread_instructions;
  machine_.CoolCaches();
  machine_.SetFuel(run.request.fuel);
  machine_.SetPassOver(run.request.pass_over);
  for (const Rank& rank : ranks_) machine_.SetMaxResident(rank.process, plan_.rules.max_ctas);
  if (run.request.check) Check(true, ScheduleOf(run));
  // Another schedule wakes late elsewhere, a directed one nowhere.
  if (run.request.directed == 0)
    SetLateWakes(machine_, SkewOf(run.request) ^ run.request.schedule, run.disturbed);
  if (run.request.schedule != 0) run.stalls = SkewOf(run.request) ^ run.request.schedule;
  const auto world = static_cast<std::int32_t>(ranks_.size());
  for (std::int32_t r = 0; r < world; ++r) {
    Rank& rank = Of(r);
    rank.calls = 0;
    rank.opened = false;
    if (plan_.window == wire::JudgeWindow::kGraph) {
      if (run.request.calls > 0 && !EnqueueGraph(r, 0, run.begin)) return;
      continue;
    }
    const bool query = plan_.window == wire::JudgeWindow::kQuery;
    if (query && run.request.calls > 0) Open(r, 0, run.begin);
    const Thread thread = *std::exchange(rank.waiting, std::nullopt);
    const Step step{query ? Do::kAnswer : Do::kRun, run.request.case_index};
    hosts_.WakeAt(thread, run.begin, [this, thread, step](Time) {
      Tell(Of(thread.rank), thread, step, run_ ? run_->request.calls : 0);
    });
  }
}

void Judged::Confine(std::uint32_t case_index) {
  for (const Rank& rank : ranks_) {
    machine_.Restore(rank.process);
    for (const auto& [base, given] : rank.given)
      if (given.case_index != case_index) machine_.Withdraw(rank.process, base);
  }
}

node::Schedule Judged::ScheduleOf(const Window& run) {
  const wire::JudgeRun& request = run.request;
  if (request.directed == 0)
    return {.seed = request.schedule,
            .from = run.disturbed,
            .brief = request.brief,
            .places = request.places,
            .sample = request.sample};
  node::Schedule directed = node::ScheduleOf(request.directed);
  directed.brief = true;  // others poll meanwhile
  return directed;
}

void Judged::Check(bool on, const node::Schedule& schedule) {
  node::Checking* checking = desk_.checking();
  if (checking == nullptr) return;
  checking->SetChecking(on);
  checking->SetSchedule(schedule);
  checking->SetHostsSpeak(on && host_window());
  checking->HostsMeet();
}

// The ranks' connections; what they have made stays.
void Judged::CloseRanks() {
  if (std::exchange(sealed_, true)) return;
  control_.CloseLinks();
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(ranks_.size()); ++r)
    if (desk_.roster().Find(r) != nullptr) hosts_.EndProcess(r);
}

// --- one call of one rank ----------------------------------------------------------------------

// Not before the window is to be disturbed.
node::Time Judged::DelayOf(std::int32_t rank, std::uint32_t call, Time at) const {
  if (at < run_->disturbed) return 0;
  return Whole(run_->request.by_rank[At(call, rank, ranks_.size())].delay_ps, machine_.profile());
}

bool Judged::EnqueueGraph(std::int32_t r, std::uint32_t call, Time at) {
  const Rank& rank = Of(r);
  const Time delay = DelayOf(r, call, at);
  node::OpId op = 0;
  Status status = machine_.Act(
      rank.process, rank.stream, delay, [this, r, call](Time now) { Open(r, call, now); }, at, &op);
  if (status == Status::kSuccess)
    status = machine_.LaunchGraph(rank.process, rank.stream,
                                  rank.delivered[run_->request.case_index], at, &op);
  if (status == Status::kSuccess)
    status = machine_.Act(
        rank.process, rank.stream, 0, [this, r, call](Time now) { Close(r, call, now); }, at, &op);
  if (status == Status::kSuccess) return true;
  run_->reply.status = static_cast<std::int32_t>(status);
  Finish(End::kFault, r,
         "cannot launch the captured graph: resources that it uses no longer exist");
  return false;
}

void Judged::Open(std::int32_t r, std::uint32_t call, Time at) {
  if (!run_) return;
  const std::size_t index = At(call, r, ranks_.size());
  run_->reply.opened_ps[index] = at - run_->begin;
  const std::uint32_t which = run_->request.case_index;
  const wire::JudgeCall& what = run_->request.by_rank[index];
  const Rank& rank = Of(r);
  for (const wire::JudgePoison& poison : what.poison) {
    const node::Address to = rank.tensors[which][poison.tensor];
    const std::uint64_t bytes = plan_.cases[which].tensors[poison.tensor].bytes;
    // What the call before has left there is the judge's: no need to keep it as well.
    if (copy_) machine_.PokeFile(rank.process, to, WholePages(-1, 0, bytes));
    buffer_.resize(std::min(bytes, kPiece));
    Repeat(poison.word, buffer_);
    ForPieces(bytes, [&](std::uint64_t from, std::uint64_t size) {
      machine_.Poke(rank.process, to + from, std::span(buffer_).first(size));
    });
  }
  for (const wire::JudgeBytes& part : what.draw) {
    const node::Address to = rank.tensors[which][part.tensor];
    node::FileBytes mapped = WholePages(options_.inputs_fd, part.place, part.bytes);
    if (!copy_ || !machine_.PokeFile(rank.process, to, mapped)) mapped.size = 0;
    machine_.Poke(rank.process, to + mapped.size,
                  options_.inputs.subspan(part.place + mapped.size, part.bytes - mapped.size));
  }
  // Calls stand back to back in the stream, two at a time: that is all a stream has to know.
  if (plan_.window == wire::JudgeWindow::kGraph && !run_->request.drain &&
      call + 1 < run_->request.calls)
    EnqueueGraph(r, call + 1, at);
}

void Judged::Close(std::int32_t r, std::uint32_t call, Time at) {
  if (!run_) return;
  const std::size_t index = At(call, r, ranks_.size());
  run_->reply.closed_ps[index] = at - run_->begin;
  const std::uint32_t which = run_->request.case_index;
  const wire::JudgeCall& what = run_->request.by_rank[index];
  const Rank& rank = Of(r);
  for (const wire::JudgeBytes& part : what.draw) {
    buffer_.resize(std::min(part.bytes, kPiece));
    ForPieces(part.bytes, [&](std::uint64_t from, std::uint64_t size) {
      machine_.Peek(rank.process, rank.tensors[which][part.tensor] + from,
                    std::span(buffer_).first(size));
      if (std::memcmp(buffer_.data(), options_.inputs.data() + part.place + from, size) != 0)
        run_->reply.changed[index] = 1;
    });
  }
  for (const wire::JudgeBytes& part : what.keep) {
    const node::Address from = rank.tensors[which][part.tensor];
    machine_.Peek(rank.process, from, options_.outputs.subspan(part.place, part.bytes));
    if (copy_)
      machine_.KeepInFile(rank.process, from,
                          WholePages(options_.outputs_fd, part.place, part.bytes));
  }
  const bool all = ++run_->closed[call] == ranks_.size();
  if (!all || !run_->request.drain || call + 1 >= run_->request.calls) return;
  if (plan_.window == wire::JudgeWindow::kGraph) {
    for (std::int32_t other = 0; other < static_cast<std::int32_t>(ranks_.size()); ++other)
      if (!run_ || !EnqueueGraph(other, call + 1, at)) return;
    return;
  }
  for (const auto& entry : std::exchange(run_->drained, {})) {
    hosts_.WakeAt(entry.first, at,
                  [this, entry](Time now) { OpenInStream(entry.first, entry.second, now); });
  }
  machine_.Stop();
}

// --- windows in which the ranks act ------------------------------------------------------------

node::StreamId Judged::StreamOf(std::int32_t r, std::uint64_t stream) {
  const Process& process = desk_.roster().Of(r);
  const auto found = process.streams.find(stream);
  return found != process.streams.end() && found->second == Of(r).device ? stream : 0;
}

void Judged::Handle(Thread thread, const wire::JudgeOpen& message, Time at) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Rank& rank = Of(thread.rank);
  if (!run_ || rank.phase != Phase::kWindow || rank.opened || message.call != rank.calls ||
      message.call >= run_->request.calls || StreamOf(thread.rank, message.stream) == 0) {
    News(NewsKind::kTampered, thread.rank, "a call started out of order");
    return desk_.Fail<wire::JudgeOpen>(thread, Status::kNotPermitted);
  }
  rank.opened = true;
  rank.given_stream = message.stream;
  if (run_->request.drain && message.call > 0 && run_->closed[message.call - 1] != ranks_.size()) {
    hosts_.Wait(thread, "the other ranks' calls", false);
    run_->drained.emplace_back(thread, message);
    return;
  }
  OpenInStream(thread, message, at);
}

void Judged::OpenInStream(Thread thread, const wire::JudgeOpen& message, Time at) {
  if (!run_) return desk_.Fail<wire::JudgeOpen>(thread, Status::kNotPermitted);
  const Rank& rank = Of(thread.rank);
  const std::int32_t r = thread.rank;
  const Time delay = DelayOf(r, message.call, at);
  const bool host = plan_.window == wire::JudgeWindow::kHost;
  // Host code looks at its memory without waiting for a stream: it begins when the call is open.
  if (host) hosts_.Wait(thread, "the start of a call", false);
  node::OpId op = 0;
  const Status status = machine_.Act(
      rank.process, message.stream, delay,
      [this, thread, r, host, call = message.call](Time now) {
        Open(r, call, now);
        if (!host) return;
        hosts_.WakeAt(thread, now, [this, thread](Time) { desk_.Reply<wire::JudgeOpen>(thread); });
        machine_.Stop();
      },
      at, &op);
  // The checker is told that the host knows of the opening.
  if (host && status == Status::kSuccess) machine_.WhenDone({op}, [](Time) {});
  if (!host || status != Status::kSuccess) desk_.Fail<wire::JudgeOpen>(thread, status);
}

void Judged::Handle(Thread thread, const wire::JudgeClose& message, Time at) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Rank& rank = Of(thread.rank);
  if (!run_ || rank.phase != Phase::kWindow || !rank.opened || message.call != rank.calls ||
      StreamOf(thread.rank, message.stream) == 0) {
    News(NewsKind::kTampered, thread.rank, "a call ended out of order");
    return desk_.Fail<wire::JudgeClose>(thread, Status::kNotPermitted);
  }
  rank.opened = false;
  ++rank.calls;
  node::OpId op = 0;
  desk_.Fail<wire::JudgeClose>(
      thread, machine_.Act(
                  rank.process, message.stream, 0,
                  [this, r = thread.rank, call = message.call](Time now) { Close(r, call, now); },
                  at, &op));
}

void Judged::AllReturned() {
  if (FirstFault() != nullptr) return FinishByFault();
  Finish(End::kDone, -1, {});
}

// --- the end -----------------------------------------------------------------------------------

const node::Fault* Judged::FirstFault() const {
  return faults_seen_ < control_.faults().size() ? &control_.faults()[faults_seen_] : nullptr;
}

void Judged::FinishByFault() {
  const node::Fault& fault = *FirstFault();
  End end = End::kFault;
  if (fault.status == Status::kNotSupported || fault.status == Status::kInvalidPtx)
    end = End::kUnsupported;
  if (fault.status == Status::kLaunchTimeout) end = End::kFuel;
  if (fault.status == Status::kNotPermitted) end = End::kForbidden;
  run_->reply.status = static_cast<std::int32_t>(fault.status);
  Finish(end, desk_.roster().RankOf(fault.process).value_or(-1), fault.message);
}

// A call failed on the host's side.
void Judged::FinishByFailure(std::int32_t rank, const wire::JudgeNext& message) {
  if (!Of(rank).forbidden.empty()) return Finish(End::kForbidden, rank, Of(rank).forbidden);
  if (FirstFault() != nullptr) return FinishByFault();
  run_->reply.status = message.status;
  const bool lacking =
      Of(rank).lacked && (message.status == static_cast<int>(Status::kNotSupported) ||
                          message.status == static_cast<int>(Status::kInvalidPtx));
  Finish(lacking ? End::kUnsupported : End::kFault, rank, Printable(message.text));
}

void Judged::GraphsOver() {
  if (FirstFault() != nullptr) return FinishByFault();
  if (machine_.Busy()) {
    control_.DeclareDeadlock();
    return Deadlocked();
  }
  Finish(End::kDone, -1, {});
}

void Judged::Deadlocked() {
  if (run_ && FirstFault() != nullptr) return FinishByFault();
  if (broken_) return;  // told already
  const RunReport report = control_.Report();
  if (run_) {
    run_->reply.json = DeadlockJson(report);
    return Finish(End::kDeadlock, -1, DeadlockText(report));
  }
  if (FirstFault() != nullptr) {
    Failed(-1, 0, {});
  } else {
    News(NewsKind::kDeadlock, -1, DeadlockText(report));
  }
  Break(End::kDeadlock, -1);
}

// The judge is about to write other inputs into the file, which nobody may see before a call opens.
void Judged::LetGo(const wire::JudgeRun& run) {
  for (std::size_t i = 0; i < run.by_rank.size(); ++i) {
    const Rank& rank = ranks_[i % ranks_.size()];
    for (const auto* parts : {&run.by_rank[i].draw, &run.by_rank[i].keep})
      for (const wire::JudgeBytes& part : *parts)
        machine_.KeepInFile(rank.process, rank.tensors[run.case_index][part.tensor],
                            WholePages(-1, 0, part.bytes));
  }
}

void Judged::Finish(End end, std::int32_t rank, std::string text) {
  Window run = std::move(*run_);
  run_.reset();
  run.reply.end = end;
  run.reply.cpu_us = CpuMicroseconds() - run.cpu_us;
  run.reply.rank = rank;
  run.reply.text = std::move(text);
  const node::Stats& stats = machine_.stats();
  run.reply.links = Since(run.links, stats.links);
  for (std::size_t m = 0; m < node::kMovers; ++m)
    run.reply.moved.push_back(stats.movers[m].bytes - run.moved[m].bytes);
  run.reply.thread_instructions = stats.thread_instructions - run.instructions;
  if (run.request.check) {
    std::vector<node::Finding> findings;
    node::Fold(control_.TakeFindings(), &findings);
    for (node::Finding& finding : findings)
      run.reply.findings.push_back(OnWire(std::move(finding), run.begin));
    if (run.request.places) {
      const node::PlaceCounts places = desk_.checking()->Places();
      run.reply.places.assign(places.begin(), places.end());
    }
    // What has not ended by itself is not followed by another window.
    if (end == End::kDone) Check(false, {});
  }
  machine_.SetFuel(0);
  SetLateWakes(machine_, 0, 0);
  // Nobody reads what kernels print.
  for (const Rank& r : ranks_) machine_.TakeText(r.process, wire::kMaxPayload);
  if (end != End::kDone) broken_ = run.reply;
  stayed_ = run.request.stays && end == End::kDone;
  if (stayed_) LetGo(run.request);
  wire::ReplyHeader header;
  options_.send(wire::Op::kJudgeRun, run.sequence, wire::EncodePayload(header, run.reply));
  if (copy_ && !stayed_) options_.leave(run.request.trace);
}

}  // namespace allranks::server
