// Agents, launches, operations of streams and hosts: what is ordered by CUDA's own means. See
// checker.h.
#include "node/check/checker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "node/check/interned.h"
#include "node/code/dependents.h"

namespace allranks::node::check {
namespace {

// Operations whose end is remembered one by one.
constexpr std::size_t kMostEnded = 1 << 14;
// What many operations add to is settled now and then.
constexpr OpId kSettleEvery = 16;

}  // namespace

Checker::Checker(State& state) : state_(state) {
  places_.ends.emplace_back();
  NewAgent({}, {}, nullptr, {});  // nobody
}

void Checker::SetSchedule(std::uint64_t seed, std::uint64_t sample) {
  seed_ = seed;
  sample_ = sample;
  given_up_ = false;
  draws_ = 0;
}

Agent Checker::NewAgent(const ChainPlace& place, const Position& position,
                        std::shared_ptr<const LaunchInfo> info, const Dim3& block) {
  const auto agent = static_cast<Agent>(places_.of.size());
  places_.of.push_back(place);
  positions_.push_back(position);
  AgentInfo& made = agents_.emplace_back();
  made.info = std::move(info);
  made.block = block;
  return agent;
}

void Checker::Enqueue(OpClocks& op, ProcessId process, ChainPlace* stream) {
  if (stream->chain == 0) {
    stream->chain = static_cast<std::uint32_t>(places_.ends.size());
    places_.ends.emplace_back();
  }
  op.place = {stream->chain, ++stream->number};
  op.process = process;
  const auto host = hosts_.find(process);
  ClockRef& knows = host != hosts_.end() ? host->second : met_;
  knows = Compacted(knows, places_);
  After(op, knows);
  // What the host does from here on is not before the operation.
  if (const auto speaker = speakers_.find(process); speaker != speakers_.end())
    speaker->second.op.agent = 0;
}

void Checker::After(OpClocks& op, const ClockRef& clock) { op.known = join_(op.known, clock); }

void Checker::After(OpClocks& op, OpId over) {
  if (over == 0) return;
  const auto it = ended_.find(over);
  After(op, it != ended_.end() ? it->second.clock : retired_);
}

void Checker::AfterDevice(OpClocks& op, ProcessId process, int device) {
  const auto it = devices_.find({process, device});
  if (it != devices_.end()) After(op, it->second);
}

void Checker::Beside(OpClocks& op, const OpClocks& primary) {
  op.beside = true;
  if (primary.launch != nullptr) After(op, primary.launch->start);
}

void Checker::Beside(OpClocks& op, OpId over, int device) {
  const auto it = ended_.find(over);
  if (it == ended_.end()) return After(op, over);
  if (it->second.device != device) {
    After(op, it->second.done);
    if (it->second.done == it->second.clock) return;
  } else {
    After(op, it->second.start);
  }
  PrimaryOver(op, it->second.done, it->second.clock);
}

void Checker::PrimaryOver(OpClocks& op, const ClockRef& done, const ClockRef& end) {
  op.beside = true;
  op.primary = join_(op.primary, done);
  op.before = join_(op.before, end);
  if (op.launch != nullptr) op.launch->primary = op.primary;
}

void Checker::Begin(OpClocks& op, const char* what, int device, std::uint64_t stream, OpId id) {
  auto info = std::make_shared<LaunchInfo>();
  info->what = what;
  info->stream = stream;
  info->op = id;
  info->process = op.process;
  info->device = device;
  info->legacy = op.legacy;
  info->site = op.site;
  if (op.process != 0) info->rank = state_.ProcessOf(op.process).rank;
  Position position;
  position.device = device;
  op.agent = NewAgent(op.place, position, std::move(info), {});
  agents_[op.agent].known = op.known;
}

void Checker::BeginLaunch(Launch& launch, OpClocks& op, std::uint64_t stream, OpId id) {
  auto clocks = std::make_shared<LaunchClocks>();
  clocks->place = op.place;
  clocks->start = clocks->end = Compacted(op.known, places_);
  clocks->primary = op.primary;
  auto info = std::make_shared<LaunchInfo>();
  info->what = "kernel";
  info->rank = state_.ProcessOf(launch.process).rank;
  info->device = launch.device->number;
  info->kernel = launch.code->name;
  info->code = launch.code;
  info->trusted = launch.trusted;
  info->block = launch.request.block;
  info->stream = stream;
  info->op = id;
  info->process = op.process;
  info->legacy = op.legacy;
  info->site = op.site;
  info->cooperative = launch.request.cooperative;
  clocks->info = std::move(info);
  op.launch = clocks;
  launch.clocks = std::move(clocks);
}

void Checker::End(OpClocks& op, OpId id) {
  ClockRef done = op.known;
  if (op.launch != nullptr) done = join_(done, op.launch->end);
  ClockRef end = join_(done, op.before);
  if (op.place.chain != 0) end = With(end, op.place);
  end = Compacted(end, places_);
  op.end = end;
  // The end of a kernel that has not waited says nothing of the one that it may have overlapped,
  // so its place in the stream, which speaks for all before it, is not known by its end.
  if (op.launch != nullptr && op.beside && !op.launch->waited) {
    Known over;
    over.base = kOver;
    const KnownRef all = Interned<Known>::Of(std::move(over));
    for (const Agent agent : op.launch->ctas) done = With(done, agent, all);
    op.done = Compacted(done, places_);
  } else {
    op.done = end;
  }
  for (const ProcessId process : op.told) HostKnows(process, end);
  ClockRef& device = devices_[{op.process, op.device}];
  everything_ = join_(everything_, end);
  device = join_(device, end);
  if (id % kSettleEvery == 0) {
    everything_ = Compacted(everything_, places_);
    device = Compacted(device, places_);
  }
  ended_[id] = {op.process, std::move(end), op.done, -1, nullptr};
  // Only kernels that let others begin early have dependents that must wait for them
  // (griddepcontrol.wait).
  if (op.launch != nullptr && LetsOthersBegin(*op.launch->info->code)) {
    ended_[id].device = op.launch->info->device;
    ended_[id].start = op.launch->start;
  }
  if (ended_.size() <= kMostEnded) return;
  retired_ = Compacted(join_(retired_, ended_.begin()->second.clock), places_);
  ended_.erase(ended_.begin());
}

// A stream's write releases what the stream knows, to the whole system (CUDA: it is preceded by
// a fence like __threadfence_system).
void Checker::StreamWrites(OpClocks& op, Object& object, std::uint64_t offset, std::uint32_t size,
                           const std::byte* old, bool releases) {
  if (op.agent == 0) return;
  Direct(&op, object, offset, size, true, true);
  Line& line = ShadowOf(object).At(offset / kLineBytes);
  if (line.history == nullptr) line.history = std::make_unique<History>();
  StrongWrite& write = line.history->Add(join_, History::kDepth, state_.now);
  write.number = ++writes_;
  write.first = static_cast<std::uint8_t>(offset % kLineBytes);
  write.size = write.element = static_cast<std::uint8_t>(size);
  write.scope = Scope::kSys;
  std::memcpy(write.old, old, size);
  std::memcpy(write.now, object.data + offset, size);
  write.by = {op.agent, 1, 0, 0};
  write.from = positions_[op.agent];
  write.visible = state_.now;
  if (!releases) return;
  const ClockRef knows = With(op.known, op.place);
  write.message.push_back({Scope::kSys, write.from, knows, nullptr, {knows, knows}});
  if (object.HostVisible() && !hosts_speak_) HostKnows(object.owner, knows);
}

void Checker::StreamWaited(OpClocks& op, Object& object, std::uint64_t offset, std::uint32_t size) {
  Direct(&op, object, offset, size, false, true);
  if (object.HostVisible() && !hosts_speak_) {
    if (const auto host = hosts_.find(object.owner); host != hosts_.end()) After(op, host->second);
  }
  Line& line = ShadowOf(object).At(offset / kLineBytes);
  if (line.history == nullptr) return;
  const auto begin = static_cast<std::uint32_t>(offset % kLineBytes);
  auto& writes = line.history->writes();
  for (auto write = writes.rbegin(); write != writes.rend(); ++write) {
    if (!write->Overlaps(begin, begin + size) || write->visible > state_.now) continue;
    if (write->scope == Scope::kSys || positions_[op.agent].Common(write->from) <= write->scope) {
      for (const Part& part : write->message) {
        if (part.scope >= positions_[op.agent].Common(part.from)) After(op, part.Whole());
      }
    }
    return;
  }
}

void Checker::EndsWith(const OpClocks& op, const OpClocks& last) {
  if (op.place.chain != 0 && op.place.chain != last.place.chain)
    places_.ends[op.place.chain] = last.place;
}

void Checker::DeviceWaited(ProcessId process, int device) {
  const auto it = devices_.find({process, device});
  if (it != devices_.end()) HostKnows(process, it->second);
}

void Checker::HostWaited(OpId over) {
  const auto it = ended_.find(over);
  if (it != ended_.end()) return HostKnows(it->second.process, it->second.clock);
  if (over == 0) return;
  for (auto& [process, clock] : hosts_) clock = join_(clock, retired_);
}

void Checker::HostWaited(OpId over, ProcessId process) {
  const auto it = ended_.find(over);
  HostKnows(process, it != ended_.end() ? it->second.clock : retired_);
}

void Checker::HostKnows(ProcessId process, const ClockRef& clock) {
  const auto [host, made] = hosts_.try_emplace(process, met_);
  host->second = join_(host->second, clock);
}

void Checker::HostMeets(ProcessId process) {
  const auto [host, made] = hosts_.try_emplace(process, met_);
  met_ = join_(met_, host->second);
  host->second = met_;
}

void Checker::HostsMeet(bool idle) {
  if (!idle) {
    met_ = join_(met_, everything_);
    for (auto& [process, clock] : hosts_) clock = met_;
    return;
  }
  for (const std::weak_ptr<Shadow>& weak : shadows_) {
    if (const auto shadow = weak.lock()) shadow->Clear();
  }
  // Those that live stay known: their objects have them.
  std::erase_if(shadows_, [](const std::weak_ptr<Shadow>& shadow) { return shadow.expired(); });
  hosts_.clear();
  records_ = 0;
  speakers_.clear();
  devices_.clear();
  ended_.clear();
  fence_sc_.clear();
  met_ = retired_ = everything_ = nullptr;
  places_.of.resize(1);
  join_.Forget();
  positions_.resize(1);
  agents_.resize(1);
  trails_.clear();
}

}  // namespace allranks::node::check
