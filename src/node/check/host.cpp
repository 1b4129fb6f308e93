// Accesses of hosts that tell of them: the threads of a process are one, at system scope. Its
// accesses are stamped with an operation on a chain of its own; whoever hears of the operation
// knows all of them, so another one begins whenever the host has said something. See checker.h.
#include <algorithm>
#include <cstring>
#include <limits>

#include "node/check/checker.h"

namespace allranks::node::check {
namespace {

using Order = Checking::HostOrder;

bool Acquires(Order order) { return order == Order::kAcquire || order == Order::kBoth; }
bool Releases(Order order) { return order == Order::kRelease || order == Order::kBoth; }

// The newest write of these bytes that has arrived; null: none is remembered.
StrongWrite* Newest(const Line& line, std::uint32_t begin, std::uint32_t end, Time now) {
  if (line.history == nullptr) return nullptr;
  auto& writes = line.history->writes();
  const auto write = std::find_if(writes.rbegin(), writes.rend(), [&](const StrongWrite& one) {
    return one.Overlaps(begin, end) && one.visible <= now;
  });
  return write != writes.rend() ? &*write : nullptr;
}

}  // namespace

Checker::Speaker& Checker::SpeakerOf(ProcessId process) {
  Speaker& speaker = speakers_[process];
  if (speaker.op.agent == 0) {
    // What findings say of it is the same for all its operations.
    std::shared_ptr<LaunchClocks> same = std::move(speaker.op.launch);
    if (same == nullptr) {
      auto info = std::make_shared<LaunchInfo>();
      info->what = "host";
      info->process = process;
      info->rank = state_.ProcessOf(process).rank;
      same = std::make_shared<LaunchClocks>();
      same->info = std::move(info);
    }
    speaker.op = {};
    Enqueue(speaker.op, process, &speaker.chain);
    Position position;
    position.native = !hosts_speak_;
    speaker.op.agent = NewAgent(speaker.op.place, position, same->info, {});
    speaker.op.launch = std::move(same);
    HostKnows(process, With(speaker.op.known, speaker.op.place));
  } else {
    After(speaker.op, hosts_[process]);
  }
  return speaker;
}

// What the newest write that has arrived says to everybody.
ClockRef Checker::Heard(const Line& line, std::uint32_t begin, std::uint32_t end) const {
  const StrongWrite* write = Newest(line, begin, end, state_.now);
  ClockRef heard;
  if (write == nullptr || write->scope != Scope::kSys) return heard;
  for (const Part& part : write->message)
    if (part.scope == Scope::kSys) heard = join_(heard, part.Whole());
  return heard;
}

void Checker::HostAccess(ProcessId process, Object& object, std::uint64_t offset,
                         std::uint64_t size, bool write, Order order) {
  Speaker& speaker = SpeakerOf(process);
  const bool atomic = order != Order::kPlain && size <= 8;
  Line& line = ShadowOf(object).At(offset / kLineBytes);
  const auto begin = static_cast<std::uint32_t>(offset % kLineBytes);
  const auto end = begin + static_cast<std::uint32_t>(size);
  Message before;  // what an update goes on with
  // A store acquires nothing: a write that does is an update.
  const bool updates = write && Acquires(order);
  if (atomic && (!write || updates)) {
    const ClockRef heard = Heard(line, begin, end);
    if (Acquires(order)) {
      HostKnows(process, heard);
      After(speaker.op, heard);
    } else {
      speaker.pending = join_(speaker.pending, heard);
    }
  }
  StrongWrite* last =
      atomic && (!write || updates) ? Newest(line, begin, end, state_.now) : nullptr;
  if (last != nullptr && last->scope == Scope::kSys) {
    // Whoever is ordered after the first of the host's reads sees nothing older and is ordered
    // after the write, too; later reads say no more.
    const auto& own = agents_[speaker.op.agent].info;
    const auto& readers = last->readers;
    if (std::none_of(readers.begin(), readers.end(),
                     [&](const auto& reader) { return agents_[reader.agent].info == own; }))
      last->Read({speaker.op.agent, 1, 0, 0}, last->Elements(begin, end));
    if (updates) before = last->message;
  }
  Direct(&speaker.op, object, offset, size, write, atomic);
  if (!write || !atomic) return;
  const ClockRef knows = With(speaker.op.known, speaker.op.place);
  if (line.history == nullptr) line.history = std::make_unique<History>();
  StrongWrite& made =
      line.history->Add(join_, seed_ != 0 ? History::kDepth : std::size_t{1}, state_.now);
  made.number = ++writes_;
  made.first = static_cast<std::uint8_t>(begin);
  made.size = made.element = static_cast<std::uint8_t>(size);
  made.scope = Scope::kSys;
  made.atomic = updates;
  std::memcpy(made.old, object.data + offset, size);
  made.by = {speaker.op.agent, 1, 0, 0};
  made.from = positions_[speaker.op.agent];
  made.visible = state_.now;
  const ClockRef said = Releases(order) ? knows : speaker.fenced;
  if (said != nullptr)
    made.message.push_back({Scope::kSys, made.from, said, nullptr, {said, said}});
  for (const Part& part : before) Merge(join_, made.message, part);
  speaker.op.agent = 0;
}

void Checker::HostTouches(ProcessId process, Object& object, std::uint64_t offset,
                          std::uint64_t size, bool write, SiteId site) {
  if (hosts_speak_ || !object.HostVisible()) return;
  // The entry's pc is where the host stands.
  Direct(&SpeakerOf(process).op, object, offset, size, write, false, site);
}

bool Checker::HostBehind(ProcessId process) const {
  const auto host = hosts_.find(process);
  const ClockRef& knows = host != hosts_.end() ? host->second : met_;
  for (auto it = devices_.lower_bound({process, std::numeric_limits<int>::min()});
       it != devices_.end() && it->first.first == process; ++it) {
    if (join_(knows, it->second) != knows) return true;
  }
  return false;
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
