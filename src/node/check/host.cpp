// Accesses of hosts that tell of them: the threads of a process are one, at system scope. Its
// accesses are stamped with an operation on a chain of its own; whoever hears of the operation
// knows all of them, so another one begins whenever the host has said something. See checker.h.
#include <cstring>

#include "node/check/checker.h"

namespace allranks::node::check {
namespace {

using Order = Checking::HostOrder;

bool Acquires(Order order) { return order == Order::kAcquire || order == Order::kBoth; }
bool Releases(Order order) { return order == Order::kRelease || order == Order::kBoth; }

}  // namespace

Checker::Speaker& Checker::SpeakerOf(ProcessId process) {
  Speaker& speaker = speakers_[process];
  if (speaker.op.agent == 0) {
    // What findings say of it is the same for all its operations.
    std::shared_ptr<LaunchClocks> same = std::move(speaker.op.launch);
    if (same == nullptr) {
      auto info = std::make_shared<LaunchInfo>();
      info->what = "host";
      info->rank = world_.ProcessOf(process).rank;
      same = std::make_shared<LaunchClocks>();
      same->info = std::move(info);
    }
    speaker.op = {};
    Enqueue(speaker.op, process, &speaker.chain);
    speaker.op.agent = NewAgent(speaker.op.place, Position{}, same->info, {});
    speaker.op.launch = std::move(same);
    HostKnows(process, With(speaker.op.known, speaker.op.place));
  } else {
    After(speaker.op, hosts_[process]);
  }
  return speaker;
}

// What the newest write that has arrived says to everybody.
ClockRef Checker::Heard(const Line& line, std::uint32_t begin, std::uint32_t end) const {
  if (line.history == nullptr) return nullptr;
  auto& writes = line.history->writes();
  for (auto write = writes.rbegin(); write != writes.rend(); ++write) {
    if (!write->Overlaps(begin, end) || write->visible > world_.now) continue;
    ClockRef heard;
    if (write->scope == Scope::kSys)
      for (const Part& part : write->message)
        if (part.scope == Scope::kSys) heard = Join(heard, part.Whole());
    return heard;
  }
  return nullptr;
}

void Checker::HostAccess(ProcessId process, Object& object, std::uint64_t offset,
                         std::uint64_t size, bool write, Order order) {
  Speaker& speaker = SpeakerOf(process);
  const bool atomic = order != Order::kPlain && size <= 8;
  Line& line = ShadowOf(object).At(offset / kLineBytes);
  const auto begin = static_cast<std::uint32_t>(offset % kLineBytes);
  const auto end = begin + static_cast<std::uint32_t>(size);
  if (atomic) {
    const ClockRef heard = Heard(line, begin, end);
    if (Acquires(order)) {
      HostKnows(process, heard);
      After(speaker.op, heard);
    } else if (!write) {
      speaker.pending = Join(speaker.pending, heard);
    }
  }
  Direct(&speaker.op, object, offset, size, write, atomic);
  if (!write || !atomic) return;
  const ClockRef knows = With(speaker.op.known, speaker.op.place);
  if (line.history == nullptr) line.history = std::make_unique<History>();
  StrongWrite& made = line.history->Add(seed_ != 0 ? History::kDepth : std::size_t{1}, world_.now);
  made.number = ++writes_;
  made.first = static_cast<std::uint8_t>(begin);
  made.size = made.element = static_cast<std::uint8_t>(size);
  made.scope = Scope::kSys;
  std::memcpy(made.old, object.data + offset, size);
  made.by = {speaker.op.agent, 1, 0, 0};
  made.from = positions_[speaker.op.agent];
  made.visible = world_.now;
  const ClockRef said = Releases(order) ? knows : speaker.fenced;
  if (said != nullptr)
    made.message.push_back({Scope::kSys, made.from, said, nullptr, {said, said}});
  speaker.op.agent = 0;
}

void Checker::HostFence(ProcessId process, Order order) {
  Speaker& speaker = SpeakerOf(process);
  if (Acquires(order)) {
    HostKnows(process, speaker.pending);
    After(speaker.op, speaker.pending);
    speaker.pending = nullptr;
  }
  if (!Releases(order)) return;
  speaker.fenced = With(speaker.op.known, speaker.op.place);
  speaker.op.agent = 0;
}

}  // namespace allranks::node::check
