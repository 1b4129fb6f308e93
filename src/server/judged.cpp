// The steps of a judged run: who is who, what each rank does next, and what the judge is told.
// judged.h has the theory.
#include "server/judged.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/splitmix.h"

namespace allranks::server {

using node::Hosts;
using node::Status;

namespace {

constexpr std::size_t kMaxAnswer = 1 << 20;  // of a query; the driver takes no more

constexpr int kMaxNews = 100;
constexpr std::size_t kMaxText = 4'096;
constexpr std::size_t kMaxGather = 4'096;
constexpr std::size_t kMaxWatches = 64;
constexpr std::uint64_t kMaxSettled = 1 << 20;
constexpr node::Time kLongestStep = node::Ms(1'000);
constexpr std::uint64_t kStallEvery = 16;  // accesses of a host, under a schedule
constexpr std::uint64_t kStallLengths = 7;

}  // namespace

// What a rank says is shown to people: one printable piece of bounded length.
std::string Judged::Printable(const std::string& text) {
  std::string shown = text.substr(0, kMaxText);
  for (char& c : shown)
    if ((c < ' ' && c != '\n') || c == 0x7f || static_cast<unsigned char>(c) >= 0x80) c = '?';
  return shown;
}

Judged::Judged(Desk& desk, RunControl& control, JudgedOptions options)
    : desk_(desk),
      control_(control),
      hosts_(desk.hosts()),
      machine_(desk.machine()),
      options_(std::move(options)),
      gather_(static_cast<std::size_t>(options_.world)) {
  const node::Profile& profile = machine_.profile();
  const auto hosts = static_cast<std::int32_t>(profile.machine.hosts);
  const auto per_host = static_cast<std::int32_t>(profile.machine.devices_per_host);
  for (std::int32_t i = 0; i < options_.world; ++i) {
    Process& process = desk_.AddProcess();
    CHECK(process.rank == i);
    process.label = i;
    process.host = i / per_host % hosts;
    Rank& rank = ranks_.emplace_back();
    rank.process = desk_.AddToMachine(process);
    rank.device = i % per_host;
    rank.host = process.host;
  }
  Check(false, {});  // windows are checked, nothing before them
}

void Judged::News(NewsKind kind, std::int32_t rank, const std::string& text) {
  if (broken_ || ++news_ > kMaxNews) return;
  wire::JudgeNews news;
  news.kind = kind;
  news.rank = rank;
  news.text = Printable(text);
  options_.send(wire::Op::kJudgeNews, 0, wire::Encode(news));
}

template <class M>
void Judged::Answer(std::uint64_t sequence, Status status, const typename M::Reply& reply) {
  wire::ReplyHeader header;
  header.status = static_cast<std::int32_t>(status);
  options_.send(wire::kOpOf<M>, sequence, wire::EncodePayload(header, reply));
}

bool Judged::Received(const wire::Frame& frame) {
  std::span<const std::byte> bytes = frame.payload;
  wire::RequestHeader header;
  if (!wire::DecodeFrom(bytes, &header)) return false;
  if (frame.op == wire::Op::kJudgePlan) {
    wire::JudgePlan plan;
    if (!wire::DecodeFrom(bytes, &plan) || !bytes.empty()) return false;
    const Status status = planned_ ? Status::kIllegalState : Plan(std::move(plan));
    planned_ |= status == Status::kSuccess;
    Answer<wire::JudgePlan>(frame.sequence, status);
    return true;
  }
  if (frame.op == wire::Op::kJudgeRun) {
    wire::JudgeRun run;
    if (!wire::DecodeFrom(bytes, &run) || !bytes.empty()) return false;
    if (!ready_ || run_) {
      Answer<wire::JudgeRun>(frame.sequence, Status::kNotReady);
    } else if (!Valid(run)) {
      Answer<wire::JudgeRun>(frame.sequence, Status::kInvalidValue);
    } else if (broken_) {
      Answer<wire::JudgeRun>(frame.sequence, Status::kSuccess, *broken_);
    } else {
      if (plan_.window == wire::JudgeWindow::kGraph) CloseRanks();
      stayed_ = false;
      if (splits() && !run.goes_on) {
        if (!options_.split()) return true;
        copy_ = true;
        machine_.OwnPinned();
      }
      Start(frame.sequence, std::move(run));
    }
    return true;
  }
  return false;
}

// --- ranks come and go -------------------------------------------------------------------------

std::optional<Judged::Thread> Judged::Join(int rank) {
  Rank& r = Of(rank);
  if (r.joined || r.ended || sealed_) return std::nullopt;
  r.joined = true;
  return Thread{rank, 1};
}

void Judged::Violated(int rank, const std::string& why) {
  if (!sealed_) News(NewsKind::kTampered, rank, why);
}

void Judged::RankEnded(std::int32_t rank, Time) {
  Rank& r = Of(rank);
  r.ended = true;
  r.waiting.reset();
  // What it has delivered is all that a graph window needs of it.
  if (sealed_ || (r.served && plan_.window == wire::JudgeWindow::kGraph)) return;
  if (run_ && FirstFault() != nullptr) return FinishByFault();
  if (run_) return Finish(End::kLost, rank, "a rank exited in the window");
  News(NewsKind::kLost, rank, "a rank exited before its work was complete");
  Break(End::kLost, rank);
}

void Judged::Break(End end, std::int32_t rank) {
  if (broken_) return;
  broken_.emplace();
  broken_->end = end;
  broken_->rank = rank;
}

void Judged::Forbidden(std::int32_t rank, const std::string& why) {
  News(NewsKind::kForbidden, rank, why);
  if (Of(rank).forbidden.empty()) Of(rank).forbidden = why;
}

// --- the steps ---------------------------------------------------------------------------------

void Judged::Failed(std::int32_t rank, std::int32_t status, const std::string& text) {
  if (rank >= 0 && !Of(rank).forbidden.empty()) return;  // told already
  const node::Fault* fault = FirstFault();
  if (fault != nullptr) {
    const bool lacking =
        fault->status == Status::kNotSupported || fault->status == Status::kInvalidPtx;
    return News(lacking ? NewsKind::kUnsupported : NewsKind::kFault,
                desk_.roster().RankOf(fault->process).value_or(rank), fault->message);
  }
  const bool lacking = rank >= 0 && Of(rank).lacked &&
                       (status == static_cast<int>(Status::kNotSupported) ||
                        status == static_cast<int>(Status::kInvalidPtx));
  News(lacking ? NewsKind::kUnsupported : NewsKind::kRefused, rank, text);
}

void Judged::Handle(Thread thread, const wire::JudgeNext& message, Time at) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Rank& rank = Of(thread.rank);
  if (thread.number != 1 || rank.waiting) {
    News(NewsKind::kTampered, thread.rank, "a message from a thread that is not the driver's");
    return desk_.Fail<wire::JudgeNext>(thread, Status::kNotPermitted);
  }
  // What the rank has started must be over before it is asked for more.
  std::vector<node::OpId> ops;
  for (int device = 0; device < machine_.DeviceCount(rank.process); ++device)
    machine_.DeviceTail(rank.process, device, &ops);
  if (machine_.Done(ops)) return Deliver(thread, message, at);
  desk_.WhenDone(thread, std::move(ops), "the end of work that its call has started", 0, at,
                 [this, thread, message](Time now) { Handle(thread, message, now); });
}

void Judged::Deliver(Thread thread, const wire::JudgeNext& message, Time at) {
  Rank& rank = Of(thread.rank);
  const std::optional<Step> told = std::exchange(rank.told, std::nullopt);
  rank.phase = Phase::kServed;
  const bool window = run_ && told && (told->what == Do::kRun || told->what == Do::kAnswer);
  if (message.status != 0 || machine_.StickyError(rank.process, rank.device) != Status::kSuccess) {
    if (window) {
      FinishByFailure(thread.rank, message);
    } else {
      Failed(thread.rank, message.status, message.text);
    }
    return desk_.Reply<wire::JudgeNext>(thread, {});
  }
  if (told && told->what == Do::kCapture) {
    if (!rank.graphs.contains(message.graph)) {
      News(NewsKind::kTampered, thread.rank, "a graph that the node does not know was delivered");
      return desk_.Reply<wire::JudgeNext>(thread, {});
    }
    rank.delivered[told->case_index] = message.graph;
  }
  if (window) {
    if (told->what == Do::kAnswer) {
      if (message.answer.size() > kMaxAnswer) {
        News(NewsKind::kTampered, thread.rank, "an answer that is larger than the driver accepts");
        return desk_.Reply<wire::JudgeNext>(thread, {});
      }
      if (thread.rank == 0) run_->reply.answer = message.answer;
      if (run_->request.calls > 0) Close(thread.rank, 0, at);
    } else if (rank.calls != run_->request.calls || rank.opened) {
      News(NewsKind::kTampered, thread.rank, "a window was left before its calls were complete");
      return desk_.Reply<wire::JudgeNext>(thread, {});
    }
  }
  Advance(thread, at);
}

void Judged::Advance(Thread thread, Time at) {
  Rank& rank = Of(thread.rank);
  if (rank.step < steps_.size()) {
    const Step step = steps_[rank.step++];
    return Tell(rank, thread, step, 0);
  }
  rank.waiting = thread;
  rank.served = true;
  hosts_.Wait(thread, "the other ranks", false);
  const bool graphs = plan_.window == wire::JudgeWindow::kGraph;
  const bool all = std::all_of(ranks_.begin(), ranks_.end(), [graphs](const Rank& r) {
    return graphs ? r.served : r.waiting.has_value();
  });
  if (all) Served(at);
}

// Every rank waits in JudgeNext, or has ended with everything delivered.
void Judged::Served(Time at) {
  if (run_) return AllReturned();
  ready_ = true;
  News(NewsKind::kReady, -1, {});
  if (plan_.window != wire::JudgeWindow::kGraph) return;
  for (Rank& rank : ranks_) {
    if (!rank.waiting) continue;
    const Thread thread = *std::exchange(rank.waiting, std::nullopt);
    hosts_.WakeAt(thread, at, [this, thread](Time) { desk_.Reply<wire::JudgeNext>(thread, {}); });
  }
}

void Judged::Tell(Rank& rank, Thread thread, Step step, std::uint32_t calls) {
  wire::JudgeNextReply reply;
  reply.what = step.what;
  reply.case_index = step.case_index;
  reply.rank = static_cast<std::uint32_t>(thread.rank);
  reply.world = plan_.world;
  reply.calls = calls;
  reply.host_threads = plan_.host_threads;
  reply.args = rank.args[step.case_index];
  for (const Pinned& pinned : rank.pinned)
    if (pinned.case_index == step.case_index && !pinned.taken)
      reply.pinned.push_back(pinned.memory.size);
  rank.told = step;
  rank.phase = step.what == Do::kSetup     ? Phase::kSetup
               : step.what == Do::kCapture ? Phase::kCapture
                                           : Phase::kWindow;
  desk_.Reply<wire::JudgeNext>(thread, reply);
}

bool Judged::TakePinned(std::int32_t rank, std::uint64_t size, node::PinnedMemory* memory) {
  Rank& r = Of(rank);
  if (!r.told) return false;
  for (Pinned& pinned : r.pinned) {
    if (pinned.taken || pinned.case_index != r.told->case_index) continue;
    if (pinned.memory.size != size) return false;
    pinned.taken = true;
    *memory = pinned.memory;
    return true;
  }
  return false;
}

// --- between ranks in setup --------------------------------------------------------------------

void Judged::Handle(Thread thread, const wire::JudgeGather& message, Time at) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  auto& mine = gather_[static_cast<std::size_t>(thread.rank)];
  if (mine || message.bytes.size() > kMaxGather)
    return desk_.Fail<wire::JudgeGather>(thread, Status::kInvalidValue);
  mine.emplace(thread, message.bytes);
  const auto there = std::count_if(gather_.begin(), gather_.end(),
                                   [](const auto& entry) { return entry.has_value(); });
  hosts_.Wait(thread, fmt::format("Boot ({} of {} ranks have arrived)", there, gather_.size()),
              false);
  if (there != static_cast<std::ptrdiff_t>(gather_.size())) return;
  wire::JudgeGatherReply reply;
  bool equal = true;
  for (const auto& entry : gather_) {
    equal &= entry->second.size() == message.bytes.size();
    reply.bytes.insert(reply.bytes.end(), entry->second.begin(), entry->second.end());
  }
  if (!equal) reply = {};
  for (auto& entry : gather_) {
    const Thread other = entry->first;
    entry.reset();
    hosts_.WakeAt(other, at, [this, other, reply, equal](Time) {
      desk_.Reply<wire::JudgeGather>(other, reply,
                                     equal ? Status::kSuccess : Status::kInvalidValue);
    });
  }
}

// Under a schedule other things run on the host's core now and then, for 1 to 128 us: shorter than
// a trip across PCIe, or long enough for a queue to become full. Looks that are repeated are not
// held up, lest a host that waits does nothing else.
node::Time Judged::HostStall(const wire::JudgeHostStep& message) {
  if (!run_ || run_->stalls == 0 || message.size == 0) return 0;
  if (hosts_.now() < run_->disturbed) return 0;
  const bool looks = !message.writes && message.order != 0;
  if (looks || !message.watches.empty()) return 0;
  const std::uint64_t drawn = Draw(run_->stalls, ++run_->host_steps);
  if (drawn % kStallEvery != 0) return 0;
  const Time least = node::Us(1) << (drawn >> 8) % kStallLengths;
  return least + static_cast<Time>((drawn >> 16) % static_cast<std::uint64_t>(least));
}

void Judged::Handle(Thread thread, const wire::JudgeHostStep& message, Time at) {
  hosts_.Note(thread, message.writes ? Hosts::Activity::kActs : Hosts::Activity::kIdles);
  if (message.watches.size() > kMaxWatches ||
      message.order > static_cast<std::uint8_t>(node::Checking::HostOrder::kBoth))
    return desk_.Fail<wire::JudgeHostStep>(thread, Status::kInvalidValue);
  const Time cost =
      std::clamp<Time>(message.cost_ps, node::Ns(1), kLongestStep) + HostStall(message);
  const auto arrive = [this, thread, message](Time now) {
    const Time settled =
        message.writes ? now
                       : machine_.VisibleAt(Of(thread.rank).process, message.address,
                                            std::min<std::uint64_t>(message.size, kMaxSettled));
    const auto answer = [this, thread, message](Time) {
      if (desk_.checking() != nullptr && (message.size != 0 || message.order != 0))
        desk_.checking()->HostAccess(Of(thread.rank).process, message.address,
                                     std::min<std::uint64_t>(message.size, kMaxSettled),
                                     message.writes,
                                     static_cast<node::Checking::HostOrder>(message.order));
      desk_.Reply<wire::JudgeHostStep>(thread);
    };
    if (settled <= now) return answer(now);
    hosts_.Wait(thread, "host code", false);
    hosts_.WakeAt(thread, settled, answer);
  };
  hosts_.Wait(thread, message.watches.empty() ? "host code" : "a loop on host memory", false);
  if (message.watches.empty()) {
    hosts_.WakeAt(thread, at + cost, arrive);
    return;
  }
  const Time longest = std::clamp<Time>(message.timeout_ps, cost, kLongestStep);
  hosts_.WakeAt(thread, at + longest, arrive);
  std::vector<node::MemoryApi::HostWatch> watches;
  for (const wire::HostPoll::Watch& watch : message.watches)
    watches.push_back({watch.address, std::clamp(watch.size, 1u, 8u), watch.seen});
  const std::uint64_t id = machine_.WatchHost(
      Of(thread.rank).process, watches, at, [this, thread, at, cost, arrive](Time changed) {
        if (ThreadRecord* record = desk_.roster().Find(thread)) record->watch = 0;
        const Time looks = changed <= at ? 1 : (changed - at + cost - 1) / cost;
        hosts_.WakeAt(thread, at + looks * cost, arrive);
        machine_.Stop();
      });
  if (ThreadRecord* record = desk_.roster().Find(thread)) record->watch = id;
}

}  // namespace allranks::server
