// Listening: what a trace keeps of what it is told. trace_writer.cpp makes a file of it.
#include "server/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/report.h"

namespace allranks::server {

using node::OperationEvent;
using node::Time;

namespace {

// Waits of the same warps with less than this in between are one: less than any answer takes.
constexpr Time kPause = node::Ns(200);
constexpr std::size_t kMaxName = 400;

std::string Size(const node::Dim3& dim) { return fmt::format("{}x{}x{}", dim.x, dim.y, dim.z); }

std::string Place(const node::Profile& profile, int device) {
  if (device < 0) return "host";
  return profile.topology.vertices[static_cast<std::size_t>(device)].name;
}

}  // namespace

std::string Trace::Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kMaxName))
    out += c == '"' || c == '\\' || static_cast<unsigned char>(c) < 32 ||
                   static_cast<unsigned char>(c) > 126
               ? '?'
               : c;
  return out + "\"";
}

void Bins::Add(Time begin, Time end, std::uint64_t bytes) {
  constexpr Time kLatest = Time{1} << 60;  // keeps edges of bins within 63 bits
  begin = std::clamp<Time>(begin, 0, kLatest);
  end = std::clamp(end, begin, kLatest);
  while (static_cast<std::size_t>(end >> shift_) >= kMost) {
    for (std::size_t i = 0; i < bytes_.size(); i += 2)
      bytes_[i / 2] = bytes_[i] + (i + 1 < bytes_.size() ? bytes_[i + 1] : 0);
    bytes_.resize((bytes_.size() + 1) / 2);
    ++shift_;
  }
  const auto first = static_cast<std::size_t>(begin >> shift_);
  const auto last = static_cast<std::size_t>(end >> shift_);
  if (last >= bytes_.size()) bytes_.resize(last + 1);
  // Evenly over its span; what division leaves goes to the last bin.
  std::uint64_t left = bytes;
  for (std::size_t i = first; i < last; ++i) {
    const Time edge = static_cast<Time>(i + 1) << shift_;
    const Time from = std::max(begin, edge - width());
    const auto share =
        static_cast<std::uint64_t>(static_cast<double>(bytes) * static_cast<double>(edge - from) /
                                   static_cast<double>(end - begin));
    bytes_[i] += std::min(share, left);
    left -= std::min(share, left);
  }
  bytes_[last] += left;
}

void Trace::Attach(const node::Profile& profile) {
  profile_ = &profile;
  ports_.resize(2 * profile.topology.links.size());
}

std::uint32_t Trace::TrackOf(const TrackKey& key) {
  return tracks_.emplace(key, static_cast<std::uint32_t>(tracks_.size())).first->second;
}

std::uint32_t Trace::NameOf(const std::string& name) {
  const auto [it, added] =
      name_numbers_.emplace(name, static_cast<std::uint32_t>(name_numbers_.size()));
  if (added) names_.push_back(name);
  return it->second;
}

std::optional<std::uint32_t> Trace::Keep(Slice slice) {
  if (slices_.size() >= max_slices_) {
    ++dropped_;
    return std::nullopt;
  }
  slices_.push_back(std::move(slice));
  return static_cast<std::uint32_t>(slices_.size() - 1);
}

void Trace::KeepOperation(node::OpId op, Open& open) {
  const bool instant = open.slice.end < 0;
  const std::optional<std::uint32_t> slice = Keep(std::move(open.slice));
  const auto call = queued_.find(op);
  if (slice && !instant) {
    op_slices_.emplace(op, *slice);
    if (call != queued_.end()) flows_.push_back({.to = *slice, .call = call->second});
  }
  if (call != queued_.end()) queued_.erase(call);
}

void Trace::KeepWait(Wait& wait) {
  if (!wait.by_place.empty())
    wait.last.args += fmt::format(R"(,"ended_by":{})", Quoted(wait.by_place));
  const std::optional<std::uint32_t> slice = Keep(std::move(wait.last));
  if (slice && wait.by != 0)
    flows_.push_back({.to = *slice, .op = wait.by, .written = wait.written});
}

void Trace::EnterCall(node::HostThread thread) {
  if (finished_) return;
  current_call_ = calling_[thread] = ++calls_;
}

void Trace::OnQueued(node::OpId op) {
  if (!finished_ && current_call_ != 0 && queued_.size() < max_slices_)
    queued_.emplace(op, current_call_);
}

void Trace::OnBegin(const OperationEvent& event) {
  if (finished_) return;
  // Beyond the limit nothing is kept open, either: it could not be kept when it ends.
  if (slices_.size() + open_.size() >= max_slices_) {
    ++dropped_;
    return;
  }
  int& number = streams_[{event.device, event.process, event.stream}];
  if (number == 0) number = event.legacy ? -1 : ++stream_counts_[{event.device, event.process}];
  Open open;
  open.kind = event.kind;
  open.slice.begin = event.time;
  TrackKey key{Group::kDevice, event.device, event.process, event.stream, Kind::kStream};
  open.waits = key;
  std::get<Kind>(open.waits) = Kind::kWaits;
  const std::string stream = number < 0 ? "default stream" : fmt::format("stream {}", number);
  std::string name, args;
  switch (event.kind) {
    case OperationEvent::Kind::kKernel:
      name = Demangle(event.name).substr(0, kMaxName);
      args = fmt::format(R"("grid":"{}","block":"{}")", Size(event.grid), Size(event.block));
      break;
    case OperationEvent::Kind::kCopy:
    case OperationEvent::Kind::kMemset: {
      const bool copy = event.kind == OperationEvent::Kind::kCopy;
      const std::string from = Place(*profile_, event.from), to = Place(*profile_, event.to);
      name = copy ? fmt::format("copy {} > {}", from, to) : fmt::format("memset {}", to);
      args = fmt::format(R"("bytes":{},"stream":"{}")", event.bytes, stream);
      key = {Group::kDevice, event.device, 0, static_cast<std::uint64_t>(event.engine),
             Kind::kEngine};
      break;
    }
    case OperationEvent::Kind::kMove:
      name =
          fmt::format("prefetch {} > {}", Place(*profile_, event.from), Place(*profile_, event.to));
      args = fmt::format(R"("bytes":{})", event.bytes);
      break;
    case OperationEvent::Kind::kRecord:
      name = "event record";
      break;
    case OperationEvent::Kind::kHost:
      name = "host function";
      break;
    case OperationEvent::Kind::kValues:
      name = "stream memory operations";
      break;
  }
  open.slice.track = TrackOf(key);
  open.slice.name = NameOf(name);
  open.slice.args = std::move(args);
  open_[event.op] = std::move(open);
}

void Trace::OnEnd(node::OpId op, Time at, const node::KernelRecord* kernel) {
  const auto it = open_.find(op);
  if (finished_) return;
  if (it == open_.end()) {
    queued_.erase(op);
    return;
  }
  Open& open = it->second;
  CloseWaits(op, open, at);
  open.slice.end = open.kind == OperationEvent::Kind::kRecord ? -1 : at;
  if (kernel != nullptr) {
    open.slice.args += fmt::format(R"(,"bytes_read":{},"bytes_written":{},"remote_bytes":{})",
                                   kernel->bytes_read, kernel->bytes_written, kernel->remote_bytes);
  }
  KeepOperation(op, open);
  open_.erase(it);
}

void Trace::OnPark(const node::WaitEvent& event) {
  if (finished_ || !open_.contains(event.op)) return;
  Wait& wait = waits_[{event.op, event.place}];
  if (wait.parked == 0) {
    wait.begin = event.time;
    wait.most = 0;
    if (wait.args.empty()) {
      wait.last.end = -1;
      wait.args = fmt::format(R"("in":{})", Quoted(*event.what));
      if (event.line != 0)
        wait.args +=
            fmt::format(R"(,"at":{})", Quoted(fmt::format("{}:{}", *event.file, event.line)));
      if (event.object != nullptr)
        wait.args += fmt::format(R"(,"for":{})",
                                 Quoted(fmt::format("{} + 0x{:x}", *event.object, event.offset)));
    }
  }
  wait.begin = std::min(wait.begin, event.time);
  wait.most = std::max(wait.most, ++wait.parked);
}

void Trace::OnWake(const node::WaitEvent& event) {
  const auto open = open_.find(event.op);
  const auto it = waits_.find({event.op, event.place});
  if (finished_ || open == open_.end() || it == waits_.end() || it->second.parked == 0) return;
  if (--it->second.parked == 0) CloseWait(it->second, open->second, event.time, &event);
}

void Trace::CloseWait(Wait& wait, const Open& open, Time at, const node::WaitEvent* event) {
  const auto ended_by = [&] {
    wait.by = event != nullptr ? event->by : 0;
    wait.written = event != nullptr ? event->written : 0;
    const bool place = wait.by != 0 && event->by_file != nullptr && event->by_line != 0;
    wait.by_place = place ? fmt::format("{}:{}", *event->by_file, event->by_line) : "";
  };
  Slice slice;
  slice.begin = std::max(wait.begin, open.slice.begin);
  slice.end = std::max(at, slice.begin);
  slice.track = TrackOf(open.waits);
  slice.name = open.slice.name;
  if (wait.last.end >= 0) {
    if (slice.begin <= wait.last.end + kPause) {
      wait.last.end = std::max(slice.end, wait.last.end);
      ended_by();
      return;
    }
    KeepWait(wait);
  }
  slice.args = wait.args + fmt::format(R"(,"warps":{})", wait.most);
  wait.last = std::move(slice);
  ended_by();
}

void Trace::CloseWaits(node::OpId op, const Open& open, Time at) {
  auto it = waits_.lower_bound({op, 0});
  while (it != waits_.end() && it->first.first == op) {
    if (it->second.parked != 0) CloseWait(it->second, open, at, nullptr);
    if (it->second.last.end >= 0) {
      it->second.last.end = std::min(it->second.last.end, std::max(at, it->second.last.begin));
      KeepWait(it->second);
    }
    it = waits_.erase(it);
  }
}

void Trace::OnPort(std::size_t port, Time begin, Time end, std::uint64_t bytes) {
  if (!finished_) ports_[port].Add(begin, end, bytes);
}

void Trace::OnCall(node::HostThread thread, const std::string& what, std::string args, Time begin,
                   Time end) {
  const auto call = calling_.find(thread);
  const std::uint64_t number = call != calling_.end() ? call->second : 0;
  if (call != calling_.end()) calling_.erase(call);
  if (finished_ || end <= begin) return;
  Slice slice;
  slice.begin = begin;
  slice.end = end;
  slice.track = TrackOf({Group::kRank, thread.rank, 0, thread.number, Kind::kThread});
  slice.name = NameOf(what);
  slice.args = std::move(args);
  if (const auto kept = Keep(std::move(slice)); kept && number != 0)
    call_slices_.emplace(number, *kept);
}

namespace {

// As tools show it: the domain in front of the name, unless it is the default one.
std::string Shown(const std::string& domain, const std::string& name) {
  const std::string text = name.empty() ? "(unnamed)" : name;
  return domain.empty() ? text : domain + ": " + text;
}

}  // namespace

void Trace::OnRange(node::HostThread thread, const std::string& domain, const std::string& name,
                    bool pushed, Time begin, Time end) {
  if (finished_) return;
  Slice slice;
  slice.begin = begin;
  slice.end = std::max(begin, end);
  slice.range = true;
  slice.track = TrackOf(
      {Group::kRank, thread.rank, 0, thread.number, pushed ? Kind::kThread : Kind::kRanges});
  slice.name = NameOf(Shown(domain, name));
  slice.args = fmt::format(R"("nvtx":"{}")", pushed ? "push" : "start");
  Keep(std::move(slice));
}

void Trace::OnMark(node::HostThread thread, const std::string& domain, const std::string& text,
                   Time at) {
  if (finished_) return;
  Slice slice;
  slice.begin = at;
  slice.end = -1;
  slice.track = TrackOf({Group::kRank, thread.rank, 0, thread.number, Kind::kThread});
  slice.name = NameOf(Shown(domain, text));
  slice.args = R"("nvtx":"mark")";
  Keep(std::move(slice));
}

void Trace::NameThread(node::HostThread thread, const std::string& name) {
  if (!finished_ && !name.empty()) thread_names_[thread] = name;
}

void Trace::NameStream(node::ProcessId process, node::StreamId stream, const std::string& name) {
  if (!finished_ && !name.empty()) stream_names_[{process, stream}] = name;
}

void Trace::Finish(Time end) {
  for (auto& [op, open] : open_) {
    CloseWaits(op, open, end);
    open.slice.end = std::max(end, open.slice.begin);
    open.slice.args += open.slice.args.empty() ? R"("ended":false)" : R"(,"ended":false)";
    KeepOperation(op, open);
  }
  open_.clear();
  std::erase_if(faults_, [&](const auto& fault) { return fault.first > end; });
  finished_ = true;
}

}  // namespace allranks::server
