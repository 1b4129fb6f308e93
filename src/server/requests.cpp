// The way of a request: bytes to a message, what it costs, whether it may be carried out, and the
// reply. Who carries it out is one of the *_calls.cpp. Part of Core; see core.h.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "server/core.h"

namespace allranks::server {
namespace {

// Reads of the clock cannot have cost more than this between two messages.
constexpr node::Time kMaxLocal = node::Ms(3'600'000);

}  // namespace

void Core::Received(Link* link, wire::Frame frame) {
  auto found = sessions_.find(link);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  if (!session.said_hello) {
    if (frame.op != wire::Op::kHello) return Violation(link, "its first message is no hello");
    return AcceptHello(link, session, frame);
  }
  auto record = threads_.find(session.thread);
  if (record == threads_.end()) return Violation(link, "a message of a thread that has ended");
  if (record->second.asked)
    return Violation(link, "a second request before the first was answered");
  if (Process& process = ProcessOf(session.thread); process.machine && process.pinned)
    machine_->HostWrote(*process.machine, hosts_.now());
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
      case wire::Op::kAfterLast_:
        break;
    }
  }
  Violation(link, fmt::format("'{}' is not for a rank to send", wire::OpName(frame.op)));
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
    if (refused != node::Status::kSuccess) return Fail<M>(thread, refused);
    Handle(thread, *message, at);
  });
}

void Core::Ask(Link* link, Session& session, wire::Frame& frame, const wire::RequestHeader* header,
               std::function<void(Thread, Time)> carry_out) {
  if (header == nullptr || header->local_ps < 0 || header->local_ps > kMaxLocal ||
      header->touches.size() > wire::kMaxTouches || header->stack.size() > wire::kMaxStack)
    return Violation(link, fmt::format("a malformed '{}'", wire::OpName(frame.op)));
  const Thread thread = session.thread;
  ThreadRecord& record = threads_.at(thread);
  record.asked = true;
  record.op = frame.op;
  record.sequence = frame.sequence;
  record.fds = std::move(frame.fds);
  const bool keeps_series = frame.op == wire::Op::kStreamQuery ||
                            frame.op == wire::Op::kEventQuery || frame.op == wire::Op::kYield;
  if (!keeps_series) record.series = {};
  if (frame.op != wire::Op::kHostPoll) record.parked = {};
  const Time cost = CostOf(frame.op);
  const bool accepted =
      hosts_.Request(thread, header->local_ps + cost, wire::OpName(frame.op),
                     [this, thread, cost, op = frame.op, touches = header->touches,
                      stack = header->stack, carry_out = std::move(carry_out)](Time at) {
                       doubting_.erase(thread);
                       if (options_.trace != nullptr) threads_[thread].since = at - cost;
                       Meet(thread);
                       Touched(thread, touches);
                       if (checking_ != nullptr) checking_->SetCaller(SiteOf(thread, stack));
                       carry_out(thread, at);
                       if (checking_ != nullptr) checking_->SetCaller(0);
                       if (op != wire::Op::kHostPoll)
                         LookAgain(thread, op == wire::Op::kWaitThread, at);
                     });
  if (!accepted) Violation(link, "a message of a thread that does not run");
}

// A context that has failed answers everything that would use it with its error.
node::Status Core::Refused(Thread thread, const std::string& why, int device,
                           std::uint64_t stream) const {
  if (!why.empty()) {
    judged_->Forbidden(thread.rank, why);
    return node::Status::kNotPermitted;
  }
  const Process& process = processes_.at(thread.rank);
  if (stream != 0) {
    const auto known = process.streams.find(stream);
    if (known == process.streams.end()) return node::Status::kSuccess;
    device = known->second;
  }
  if (device < 0 || !process.machine || device >= machine_->DeviceCount(*process.machine))
    return node::Status::kSuccess;
  return machine_->StickyError(*process.machine, device);
}

// Answers come in order, however little their calls cost.
node::Time Core::CostOf(wire::Op op) const {
  const auto& launch = machine_->profile().launch;
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

// What one process's host code has waited for may be known to another's from here on. By which way
// they talk (a pipe, shared memory, MPI) is not always visible here, but whoever hears of something
// makes its next call after the other's has been answered: so all calls count as such meetings,
// in the order in which they are handled. Judged ranks have no such ways; judged.cpp says when they
// meet.
void Core::Meet(Thread thread) {
  if (checking_ == nullptr || judged_ != nullptr) return;
  const auto process = processes_.find(thread.rank);
  if (process != processes_.end() && process->second.machine)
    checking_->HostMeets(*process->second.machine);
}

// What host code has touched since its last message. A judged rank's word is not asked for.
void Core::Touched(Thread thread, const std::vector<wire::HostTouch>& touches) {
  if (touches.empty() || checking_ == nullptr || judged_ != nullptr) return;
  const auto process = processes_.find(thread.rank);
  if (process == processes_.end() || !process->second.machine) return;
  for (const wire::HostTouch& touch : touches) {
    checking_->HostTouches(*process->second.machine, touch.address,
                           std::clamp<std::uint32_t>(touch.size, 1, 16), touch.write,
                           sites_.OfAccess(process->second.pid, touch.pc, touch.caller));
  }
}

bool Core::MayChange(std::int32_t rank) const {
  // Instrumented host code says itself what it looks at, and its steps have their own times; its
  // pages stay open.
  if (judged_ != nullptr) return machine_->Busy() && !judged_->host_window();
  if (machine_->Busy()) return true;
  const auto process = processes_.find(rank);
  return process != processes_.end() && process->second.pinned && hosts_.ThreadCount(rank) > 1;
}

node::SiteId Core::SiteOf(Thread thread, const std::vector<std::uint64_t>& stack) {
  if (stack.empty() || stack.size() > wire::kMaxStack || checking_ == nullptr || judged_ != nullptr)
    return 0;
  const auto process = processes_.find(thread.rank);
  return process == processes_.end() ? 0 : sites_.OfCall(process->second.pid, stack);
}

void Core::SendReply(Thread thread, node::Status status, const wire::Blob& body, int fd) {
  auto found = threads_.find(thread);
  if (found == threads_.end()) return;
  ThreadRecord& record = found->second;
  Meet(thread);
  if (judged_ != nullptr) {
    judged_->Answered(thread.rank, status);
    if (const auto process = processes_.find(thread.rank);
        process != processes_.end() && process->second.machine)
      machine_->ShowHost(*process->second.machine);
  }
  Release(record, thread);
  record.asked = false;
  if (record.since && options_.trace != nullptr)
    options_.trace->OnCall(thread, wire::OpName(record.op), *record.since, hosts_.now());
  record.since.reset();
  if (record.link != nullptr) {
    wire::ReplyHeader header;
    header.status = static_cast<std::int32_t>(status);
    header.busy = MayChange(thread.rank);
    if (checking_ != nullptr && judged_ == nullptr) {
      const auto process = processes_.find(thread.rank);
      header.watch = process != processes_.end() && process->second.machine &&
                     (machine_->Busy() || checking_->HostBehind(*process->second.machine));
    }
    header.clock = hosts_.now();
    if (wire::InfoOf(record.op).Has(wire::kFlushesText)) {
      if (const auto process = processes_.find(thread.rank);
          process != processes_.end() && process->second.machine) {
        const std::size_t room =
            wire::kMaxPayload - std::min<std::size_t>(wire::kMaxPayload, body.size() + 1024);
        node::DeviceText text = machine_->TakeText(*process->second.machine, room);
        if (judged_ == nullptr) {
          header.out = std::move(text.out);
          header.err = std::move(text.err);
        }
      }
    }
    wire::Blob payload;
    payload.reserve(16 + body.size());
    wire::EncodeTo(header, payload);
    payload.insert(payload.end(), body.begin(), body.end());
    record.link->Send(record.op, record.sequence, payload, fd);
  }
  ran_natively_ = true;
  hosts_.Resume(thread);
}

// Whatever the thread waited for no longer needs to know of it.
void Core::Release(ThreadRecord& record, Thread thread) {
  if (record.when_done != 0) machine_->CancelWhenDone(std::exchange(record.when_done, 0));
  if (record.watch != 0) machine_->Unwatch(std::exchange(record.watch, 0));
  record.in_wait_key = false;
  parked_.erase(thread);
  if (!record.fds.empty()) {
    record.fds.clear();
    descriptor_waits_.erase(thread);
  }
}

void Core::Handle(Thread thread, const wire::JudgeNext& message, Time at) {
  judged_->Handle(thread, message, at);
}
void Core::Handle(Thread thread, const wire::JudgeOpen& message, Time at) {
  judged_->Handle(thread, message, at);
}
void Core::Handle(Thread thread, const wire::JudgeClose& message, Time at) {
  judged_->Handle(thread, message, at);
}
void Core::Handle(Thread thread, const wire::JudgeGather& message, Time at) {
  judged_->Handle(thread, message, at);
}
void Core::Handle(Thread thread, const wire::JudgeHostStep& message, Time at) {
  judged_->Handle(thread, message, at);
}

}  // namespace allranks::server
