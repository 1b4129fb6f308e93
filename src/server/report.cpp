// Reports as JSON and as text. Keys of the JSON are documented in docs/cli.md by `allranks --help`.
#include "server/report.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <tuple>

#include "node/findings.h"
#include "node/object_name.h"

namespace allranks::server {

namespace {

using nlohmann::json;

// The report must fit into one frame.
constexpr std::size_t kMaxKernels = 100'000;

json ToJson(const node::Dim3& dim) { return json::array({dim.x, dim.y, dim.z}); }

std::string Text(const node::Dim3& dim) { return fmt::format("({},{},{})", dim.x, dim.y, dim.z); }

std::string Duration(node::Time time) {
  const double ns = static_cast<double>(time) / 1e3;
  if (ns < 1e4) return fmt::format("{:.1f} ns", ns);
  if (ns < 1e7) return fmt::format("{:.3f} us", ns / 1e3);
  return fmt::format("{:.3f} ms", ns / 1e6);
}

int RankOf(const RunReport& report, node::ProcessId process) {
  auto found = report.ranks.find(process);
  return found == report.ranks.end() ? -1 : found->second;
}

const char* StateName(node::Hosts::State state) {
  switch (state) {
    case node::Hosts::State::kAnnounced:
      return "announced";
    case node::Hosts::State::kRunning:
      return "running";
    case node::Hosts::State::kPending:
      return "pending";
    case node::Hosts::State::kWaiting:
      return "waiting";
    case node::Hosts::State::kBlocked:
      return "blocked";
    case node::Hosts::State::kDetached:
      return "detached";
  }
  return "?";
}

// Four digits behind the point: a share of a rate is not worth more.
json Share(double part, double whole) {
  if (whole <= 0) return nullptr;
  return std::round(part / whole * 1e4) / 1e4;
}

json Link(const node::LinkRecord& link, node::Time virtual_time) {
  json directions = json::array();
  for (const node::DirectionRecord& direction : link.directions) {
    json bytes = json::object();
    std::uint64_t payload = 0;
    for (std::size_t m = 0; m < node::kMovers; ++m) {
      bytes[NameOf(static_cast<node::Mover>(m))] = direction.bytes[m];
      payload += direction.bytes[m];
    }
    const auto wire = static_cast<double>(direction.wire_bytes);
    // GB/s times ps: thousandths of a byte.
    const auto room = [&](node::Time span) { return link.gbs * static_cast<double>(span) / 1e3; };
    directions.push_back({{"from", direction.from},
                          {"to", direction.to},
                          {"bytes", std::move(bytes)},
                          {"wire_bytes", direction.wire_bytes},
                          {"packets", direction.packets},
                          {"poll_bytes", direction.poll_bytes},
                          {"efficiency", Share(static_cast<double>(payload), wire)},
                          {"use", Share(wire, room(virtual_time))},
                          {"busy_use", Share(wire, room(direction.last - direction.first))},
                          {"first_ns", node::ToNs(direction.first)},
                          {"last_ns", node::ToNs(direction.last)}});
  }
  return {{"name", link.name},
          {"kind", link.kind},
          {"gbs", link.gbs},
          {"directions", std::move(directions)}};
}

json Movers(const node::Stats& stats) {
  json movers = json::object();
  for (std::size_t m = 0; m < node::kMovers; ++m) {
    const node::MoverRecord& record = stats.movers[m];
    movers[NameOf(static_cast<node::Mover>(m))] = {
        {"bytes", record.bytes},
        {"link_bytes", record.link_bytes},
        {"wire_bytes", record.wire_bytes},
        {"efficiency",
         Share(static_cast<double>(record.link_bytes), static_cast<double>(record.wire_bytes))}};
  }
  return movers;
}

// What one kernel, or all of a name, have used of the rates of links and HBM; null: took no time.
struct Use {
  node::Time link = 0, hbm = 0, time = 0;
  json LinkShare() const { return Share(static_cast<double>(link), static_cast<double>(time)); }
  json HbmShare() const { return Share(static_cast<double>(hbm), static_cast<double>(time)); }
};

// All launches of one name. Those that have not ended count until now.
struct KernelName {
  std::uint64_t unfinished = 0, bytes_read = 0, bytes_written = 0, remote_bytes = 0;
  std::vector<node::Time> times;
  Use use;
};

node::Time MedianOf(std::vector<node::Time> times) {
  std::ranges::sort(times);
  const std::size_t half = times.size() / 2;
  return times.size() % 2 != 0 ? times[half] : (times[half - 1] + times[half]) / 2;
}

Use UseOf(const node::KernelRecord& kernel, node::Time now) {
  const node::Time end = kernel.end < 0 ? std::max(now, kernel.start) : kernel.end;
  return {kernel.link_busy, kernel.hbm_busy, end - kernel.start};
}

// The slowest first.
json ByKernel(const std::vector<node::KernelRecord>& kernels, node::Time now) {
  std::map<std::string, KernelName> names;
  for (const node::KernelRecord& kernel : kernels) {
    KernelName& name = names[kernel.name];
    const Use use = UseOf(kernel, now);
    name.times.push_back(use.time);
    name.unfinished += kernel.end < 0 ? 1 : 0;
    name.bytes_read += kernel.bytes_read;
    name.bytes_written += kernel.bytes_written;
    name.remote_bytes += kernel.remote_bytes;
    name.use.link += use.link;
    name.use.hbm += use.hbm;
    name.use.time += use.time;
  }
  std::vector<const std::pair<const std::string, KernelName>*> order;
  for (const auto& entry : names) order.push_back(&entry);
  // Equal ones by name. Not stable_sort: clang refuses that of libstdc++ 12.
  std::ranges::sort(order, [](const auto* a, const auto* b) {
    return std::tie(b->second.use.time, a->first) < std::tie(a->second.use.time, b->first);
  });
  json list = json::array();
  for (const auto* entry : order) {
    const KernelName& name = entry->second;
    list.push_back({{"name", Demangle(entry->first)},
                    {"calls", name.times.size()},
                    {"unfinished", name.unfinished},
                    {"total_ns", node::ToNs(name.use.time)},
                    {"median_ns", node::ToNs(MedianOf(name.times))},
                    {"bytes_read", name.bytes_read},
                    {"bytes_written", name.bytes_written},
                    {"remote_bytes", name.remote_bytes},
                    {"link_share", name.use.LinkShare()},
                    {"hbm_share", name.use.HbmShare()}});
  }
  return list;
}

json RangesOf(const std::vector<RangeTotal>& totals) {
  json list = json::array();
  for (const RangeTotal& total : totals) {
    list.push_back({{"domain", total.domain},
                    {"name", total.name},
                    {"calls", total.calls},
                    {"total_ns", node::ToNs(total.total)},
                    {"longest_ns", node::ToNs(total.longest)}});
  }
  return list;
}

// It begins with the kernel's name.
std::string WriterOf(const node::Waiter& waiter) {
  const std::size_t end = waiter.writer.find(' ');
  if (end == std::string::npos) return waiter.writer;
  return Demangle(waiter.writer.substr(0, end)) + waiter.writer.substr(end);
}

// The kernel's name in a fault's message stands behind this.
std::string Readable(const std::string& message) {
  static constexpr std::string_view kBefore = " in kernel ";
  const std::size_t before = message.find(kBefore);
  if (before == std::string::npos) return message;
  const std::size_t begin = before + kBefore.size(), end = message.find(',', begin);
  return message.substr(0, begin) + Demangle(message.substr(begin, end - begin)) +
         (end == std::string::npos ? "" : message.substr(end));
}

json Deadlock(const RunReport& report) {
  json waiters = json::array();
  for (const node::Waiter& waiter : report.waiters) {
    json entry = {{"rank", RankOf(report, waiter.process)},
                  {"device", waiter.device},
                  {"kernel", Demangle(waiter.kernel)},
                  {"block", ToJson(waiter.block_index)},
                  {"resident", waiter.resident},
                  {"what", waiter.what},
                  {"others", waiter.others}};
    if (waiter.resident) {
      entry["warp"] = waiter.warp;
      entry["lanes"] = waiter.lanes;
    }
    if (!waiter.file.empty()) {
      entry["file"] = waiter.file;
      entry["line"] = waiter.line;
      if (!waiter.inlined_at.empty()) entry["inlined_at"] = waiter.inlined_at;
    }
    if (waiter.has_object) {
      entry["object"] = waiter.object;
      entry["offset"] = waiter.offset;
      entry["seen"] = waiter.seen;
      if (!waiter.writer.empty()) entry["writer"] = WriterOf(waiter);
    }
    waiters.push_back(std::move(entry));
  }
  json hosts = json::array();
  for (const node::Hosts::ThreadInfo& thread : report.hosts) {
    hosts.push_back({{"rank", thread.id.rank},
                     {"thread", thread.id.number},
                     {"call", thread.what},
                     {"state", StateName(thread.state)},
                     {"since_ns", node::ToNs(thread.clock)}});
  }
  return {{"virtual_ns", node::ToNs(report.virtual_time)},
          {"livelock", report.livelock},
          {"waiters", waiters},
          {"hosts", hosts}};
}

}  // namespace

std::string Demangle(const std::string& name) {
  int status = 0;
  char* readable = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && readable != nullptr ? readable : name;
  std::free(readable);
  return result;
}

std::string ToJson(const RunReport& report) {
  json kernels = json::array();
  json by_kernel = json::array();
  json faults = json::array();
  json links = json::array();
  json movers = Movers(report.stats != nullptr ? *report.stats : node::Stats{});
  std::uint64_t copies = 0, copied_bytes = 0;
  if (report.stats != nullptr) {
    for (const node::KernelRecord& kernel : report.stats->kernels) {
      if (kernels.size() == kMaxKernels) break;
      const Use use = UseOf(kernel, report.virtual_time);
      kernels.push_back({{"name", Demangle(kernel.name)},
                         {"device", kernel.device},
                         {"rank", RankOf(report, kernel.process)},
                         {"grid", ToJson(kernel.grid)},
                         {"block", ToJson(kernel.block)},
                         {"start_ns", node::ToNs(kernel.start)},
                         {"end_ns", kernel.end < 0 ? json(nullptr) : json(node::ToNs(kernel.end))},
                         {"warp_instructions", kernel.warp_instructions},
                         {"thread_instructions", kernel.thread_instructions},
                         {"bytes_read", kernel.bytes_read},
                         {"bytes_written", kernel.bytes_written},
                         {"remote_bytes", kernel.remote_bytes},
                         {"link_share", use.LinkShare()},
                         {"hbm_share", use.HbmShare()}});
    }
    by_kernel = ByKernel(report.stats->kernels, report.virtual_time);
    for (const node::LinkRecord& link : report.stats->links)
      links.push_back(Link(link, report.virtual_time));
    for (const node::CopyRecord& copy : report.stats->copies) {
      ++copies;
      copied_bytes += copy.bytes;
    }
  }
  for (const node::Fault& fault : report.faults) {
    faults.push_back({{"rank", RankOf(report, fault.process)},
                      {"device", fault.device},
                      {"status", static_cast<int>(fault.status)},
                      {"message", Readable(fault.message)}});
  }
  json all = {{"version", 1},
              {"profile", report.profile},
              {"deterministic", report.deterministic},
              {"virtual_ns", node::ToNs(report.virtual_time)},
              {"processes", report.processes},
              {"thread_instructions", report.stats ? report.stats->thread_instructions : 0},
              {"warp_instructions", report.stats ? report.stats->warp_instructions : 0},
              {"by_kernel", by_kernel},
              {"ranges", RangesOf(report.ranges)},
              {"kernels", kernels},
              {"copies", {{"count", copies}, {"bytes", copied_bytes}}},
              {"links", links},
              {"movers", movers},
              {"faults", faults}};
  if (report.stats != nullptr && report.stats->kernels.size() > kMaxKernels)
    all["kernels_omitted"] = report.stats->kernels.size() - kMaxKernels;
  if (!report.refused_images.empty()) all["refused_images"] = report.refused_images;
  if (report.stats != nullptr && report.stats->ptx_above != 0)
    all["ptx_above_device"] = report.stats->ptx_above;
  if (!report.deterministic) all["nondeterministic_because"] = report.reasons;
  if (report.stats != nullptr && report.stats->checked_accesses != 0) {
    all["checked"] = {{"accesses", report.stats->checked_accesses},
                      {"bytes", report.stats->checked_bytes},
                      {"places", report.places}};
  }
  if (report.checked) all["findings"] = json::parse(node::ToJson(report.findings));
  if (report.deadlock) all["deadlock"] = Deadlock(report);
  // A program's strings need not be UTF-8.
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string DeadlockJson(const RunReport& report) {
  return Deadlock(report).dump(-1, ' ', false, json::error_handler_t::replace);
}

namespace {

constexpr std::size_t kMostQueued = 12;  // lines of a stream

// What each stream has to do, in order. The same several times in a row is one line.
std::string QueuedText(const RunReport& report, bool several) {
  std::string text;
  for (const node::QueuedWork& work : report.queued) {
    text += "  ";
    if (several) text += fmt::format("rank {}, ", RankOf(report, work.process));
    text += fmt::format("device {}, ", work.device);
    text += work.stream == 0 ? "default stream\n" : fmt::format("stream {}\n", work.stream);
    std::vector<std::pair<std::string, std::size_t>> lines;
    for (const node::QueuedWork::Item& item : work.items) {
      std::string line = item.what;
      if (!item.kernel.empty()) line += " " + Demangle(item.kernel);
      if (item.running) line += ", running";
      if (!lines.empty() && lines.back().first == line) {
        ++lines.back().second;
      } else {
        lines.emplace_back(std::move(line), 1);
      }
    }
    for (std::size_t i = 0; i < std::min(lines.size(), kMostQueued); ++i)
      text += fmt::format("    {}{}\n", lines[i].first,
                          lines[i].second == 1 ? "" : fmt::format(", {} times", lines[i].second));
    std::size_t more = 0;
    for (std::size_t i = kMostQueued; i < lines.size(); ++i) more += lines[i].second;
    if (more != 0) text += fmt::format("    and {} more\n", more);
  }
  return text;
}

// What waits on the devices and on the hosts. The rank is named where there are several processes.
std::string Standing(const RunReport& report) {
  const bool several = report.processes > 1;
  std::string text;
  if (!report.waiters.empty()) text += "on the devices:\n";
  for (const node::Waiter& waiter : report.waiters) {
    text += "  ";
    if (several) text += fmt::format("rank {}, ", RankOf(report, waiter.process));
    text += fmt::format("device {}", waiter.device);
    if (!waiter.kernel.empty()) text += fmt::format(", kernel {}", Demangle(waiter.kernel));
    text += '\n';
    if (waiter.kernel.empty()) {
      text += "    a stream";
    } else if (waiter.resident) {
      text += fmt::format("    block {}, warp {}, lanes 0x{:08x}", Text(waiter.block_index),
                          waiter.warp, waiter.lanes);
    } else {
      text += fmt::format("    block {}: cannot become resident", Text(waiter.block_index));
    }
    if (!waiter.file.empty()) text += fmt::format(", at {}:{}", waiter.file, waiter.line);
    if (!waiter.inlined_at.empty()) text += fmt::format(" (inlined at {})", waiter.inlined_at);
    text += '\n';
    if (!waiter.what.empty())
      text += fmt::format("    {} {}", report.deadlock ? "waits in" : "is at", waiter.what);
    if (waiter.has_object) {
      const std::string_view object =
          several ? std::string_view(waiter.object) : node::NameWithoutRank(waiter.object);
      text += fmt::format(" for {} + 0x{:x}, which holds {} (0x{:x})", object, waiter.offset,
                          waiter.seen, waiter.seen);
    }
    if (!waiter.what.empty() || waiter.has_object) text += '\n';
    if (!waiter.writer.empty()) {
      text += fmt::format("    last known strong write: {}\n", WriterOf(waiter));
    }
    if (waiter.others > 0) text += fmt::format("    and {} more like this\n", waiter.others);
  }
  if (!report.queued.empty()) text += "in the streams, not done:\n" + QueuedText(report, several);
  if (!report.hosts.empty()) text += "on the hosts:\n" + HostsText(report.hosts, several);
  return text;
}

}  // namespace

std::string DeadlockText(const RunReport& report) {
  return fmt::format("{} at {} of virtual time: {}\n", report.livelock ? "livelock" : "deadlock",
                     Duration(report.virtual_time),
                     report.livelock
                         ? "every thread waits, or repeats a loop without making progress"
                         : "every thread waits and no event is left") +
         Standing(report);
}

std::string WhereText(const RunReport& report) {
  return fmt::format("after {} of virtual time\n", Duration(report.virtual_time)) +
         Standing(report);
}

std::string HostsText(const std::vector<node::Hosts::ThreadInfo>& threads, bool several) {
  std::string text;
  for (const node::Hosts::ThreadInfo& thread : threads) {
    text += "  ";
    if (several)
      text += thread.id.rank < 0 ? "launcher, " : fmt::format("rank {}, ", thread.id.rank);
    text += fmt::format("thread {}: {} in {}, since {}\n", thread.id.number,
                        StateName(thread.state), thread.what, Duration(thread.clock));
  }
  return text;
}

}  // namespace allranks::server
