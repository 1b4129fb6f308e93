// The way of a request: bytes to a message, what it costs, and whether it may be carried out.
// Who does that is one of the groups in calls.h; desk.cpp has the way of the reply. Part of Core.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "server/call_args.h"
#include "server/calls.h"
#include "server/core.h"
#include "server/judged.h"
#include "server/trace.h"

namespace allranks::server {
namespace {

// Reads of the clock cannot have cost more than this between two messages.
constexpr node::Time kMaxLocal = node::Ms(3'600'000);

// Answers come in order, however little their calls cost.
node::Time CostOf(wire::Op op, const node::Profile& profile) {
  const auto& launch = profile.launch;
  switch (wire::InfoOf(op).cost) {
    case wire::Cost::kNothing:
      return 0;
    case wire::Cost::kHostCall:
      return kHostCall;
    case wire::Cost::kApiCall:
      return std::max(kHostCall, launch.api_call);
    case wire::Cost::kLaunch:
      return std::max(kHostCall, launch.host_call);
    case wire::Cost::kGraphLaunch:
      return std::max(kHostCall, launch.graph_call);
  }
  return 0;
}

}  // namespace

void Core::Received(Link* link, wire::Frame frame) {
  auto found = sessions_.find(link);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  if (!session.said_hello) {
    if (frame.op != wire::Op::kHello) return Violation(link, "the first message is not a hello");
    return AcceptHello(link, session, frame);
  }
  const ThreadRecord* record = roster_.Find(session.thread);
  if (record == nullptr) return Violation(link, "a message from a thread that has ended");
  if (record->asked) return Violation(link, "a second request before the first was answered");
  if (const Process& process = desk_.ProcessOf(session.thread); process.machine && process.pinned)
    machine_.HostWrote(*process.machine, hosts_.now());
  const wire::Sender sender = wire::InfoOf(frame.op).sender;
  if (sender == wire::Sender::kRank ||
      (sender == wire::Sender::kJudgedRank && judged_ != nullptr)) {
    switch (frame.op) {
#define ALLRANKS_MESSAGE(M, name, sender, cost, traits)                \
  case wire::Op::k##M:                                                 \
    if constexpr (wire::Sender::sender == wire::Sender::kRank ||       \
                  wire::Sender::sender == wire::Sender::kJudgedRank) { \
      return Accept<wire::M>(link, session, frame);                    \
    }                                                                  \
    break;
#include "wire/messages.def"
#undef ALLRANKS_MESSAGE
      case wire::Op::kNone:
      case wire::Op::kAfterLast:
        break;
    }
  }
  Violation(link, fmt::format("a rank may not send '{}'", wire::OpName(frame.op)));
}

// Compiled once per message: what is the same for all of them is in Ask and Refused.
template <class M>
void Core::Accept(Link* link, Session& session, wire::Frame& frame) {
  std::span<const std::byte> bytes = frame.payload;
  wire::RequestHeader header;
  auto message = std::make_shared<M>();
  const bool good =
      wire::DecodeFrom(bytes, &header) && wire::DecodeFrom(bytes, message.get()) && bytes.empty();
  Ask(link, session, frame, good ? &header : nullptr, [this, message](Thread thread, Time at) {
    if (options_.trace != nullptr) desk_.RecordOf(thread).args = CallArgs::Of(*message);
    constexpr bool kAsks =
        std::is_same_v<M, wire::StickyError> || std::is_same_v<M, wire::ResetDevice> ||
        std::is_same_v<M, wire::CanAccessPeer> || std::is_same_v<M, wire::MemInfo>;
    int device = -1;
    std::uint64_t stream = 0;
    if constexpr (kAsks) {
    } else if constexpr (requires { message->stream.device; }) {
      device = message->stream.device;
      stream = message->stream.stream;
    } else if constexpr (requires { message->device; }) {
      device = message->device;
    }
    const node::Status refused = Refused(
        thread, judged_ != nullptr ? judged_->Refusal(thread, *message) : "", device, stream);
    if (refused != node::Status::kSuccess) return desk_.Fail<M>(thread, refused);
    calls_->Handle(judged_.get(), thread, *message, at);
  });
}

void Core::Ask(Link* link, Session& session, wire::Frame& frame, const wire::RequestHeader* header,
               std::function<void(Thread, Time)> carry_out) {
  if (header == nullptr || header->local_ps < 0 || header->local_ps > kMaxLocal ||
      header->touches.size() > wire::kMaxTouches || header->stack.size() > wire::kMaxStack ||
      header->ranges.size() > wire::kMaxRanges)
    return Violation(link, fmt::format("a malformed '{}'", wire::OpName(frame.op)));
  const Thread thread = session.thread;
  ThreadRecord& record = desk_.RecordOf(thread);
  record.asked = true;
  record.op = frame.op;
  record.sequence = frame.sequence;
  record.fds = std::move(frame.fds);
  const bool keeps_series = frame.op == wire::Op::kStreamQuery ||
                            frame.op == wire::Op::kEventQuery || frame.op == wire::Op::kYield;
  if (!keeps_series) record.series = {};
  if (frame.op != wire::Op::kHostPoll) record.parked = {};
  const Time cost = CostOf(frame.op, machine_.profile());
  const bool accepted =
      hosts_.Request(thread, header->local_ps + cost, wire::OpName(frame.op),
                     [this, thread, cost, op = frame.op, touches = header->touches,
                      stack = header->stack, carry_out = std::move(carry_out)](Time at) {
                       calls_->poll().EndDoubt(thread);
                       if (options_.trace != nullptr) BeginTraced(thread, at - cost, stack);
                       desk_.Meet(thread);
                       Touched(thread, touches);
                       if (desk_.checking() != nullptr)
                         desk_.SetCaller(desk_.SiteOf(thread, stack));
                       carry_out(thread, at);
                       if (options_.trace != nullptr) options_.trace->LeaveCall();
                       if (desk_.checking() != nullptr) desk_.SetCaller(0);
                       if (op != wire::Op::kHostPoll)
                         calls_->poll().LookAgain(thread, op == wire::Op::kWaitThread, at);
                     });
  if (!accepted) return Violation(link, "a message from a thread that does not run");
  if (judged_ == nullptr && !header->ranges.empty())
    NoteRanges(thread, header->ranges, hosts_.now() + header->local_ps);
}

void Core::BeginTraced(Thread thread, Time since, const std::vector<std::uint64_t>& stack) {
  ThreadRecord& record = desk_.RecordOf(thread);
  record.since = since;
  record.args.clear();
  record.site = 0;
  const Process* process = roster_.Find(thread.rank);
  if (judged_ == nullptr && process != nullptr && !stack.empty())
    record.site = desk_.sites().OfCall(process->pid, stack);
  options_.trace->EnterCall(thread);
}

void Core::NoteRanges(Thread thread, const std::vector<wire::RangeEvent>& events, Time now) {
  ranges_.Note(thread, events, now);
  if (options_.trace == nullptr) return;
  for (const wire::RangeEvent& event : events) {
    if (event.kind == wire::RangeEvent::Kind::kNameThread) {
      for (const auto& [other, record] : roster_.threads())
        if (other.rank == thread.rank && static_cast<std::uint64_t>(record.tid) == event.id)
          options_.trace->NameThread(other, event.text);
    } else if (event.kind == wire::RangeEvent::Kind::kNameStream) {
      const Process* process = roster_.Find(thread.rank);
      if (process != nullptr && process->machine && process->streams.contains(event.id))
        options_.trace->NameStream(*process->machine, event.id, event.text);
    }
  }
}

// A context that has failed answers everything that would use it with its error.
node::Status Core::Refused(Thread thread, const std::string& why, int device,
                           std::uint64_t stream) const {
  if (!why.empty()) {
    judged_->Forbidden(thread.rank, why);
    return node::Status::kNotPermitted;
  }
  const Process& process = roster_.Of(thread.rank);
  if (stream != 0) {
    const auto known = process.streams.find(stream);
    if (known == process.streams.end()) return node::Status::kSuccess;
    device = known->second;
  }
  if (device < 0 || !process.machine || device >= machine_.DeviceCount(*process.machine))
    return node::Status::kSuccess;
  return machine_.StickyError(*process.machine, device);
}

// What host code has touched since its last message. A judged rank's word is not asked for.
void Core::Touched(Thread thread, const std::vector<wire::HostTouch>& touches) {
  if (touches.empty() || desk_.checking() == nullptr || judged_ != nullptr) return;
  const Process* process = roster_.Find(thread.rank);
  if (process == nullptr || !process->machine) return;
  for (const wire::HostTouch& touch : touches) {
    desk_.checking()->HostTouches(
        *process->machine, touch.address, std::clamp<std::uint32_t>(touch.size, 1, 16), touch.write,
        desk_.sites().OfAccess(process->pid, touch.pc, touch.caller, touch.above));
  }
}

}  // namespace allranks::server
