// A trace as JSON in Chrome's trace event format: an object with the list `traceEvents`, in which
// times are microseconds. Metadata (M) names processes and tracks, complete events (X) are slices,
// instants (i) event records, counters (C) the use of links.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/trace.h"

namespace allranks::server {

using node::Time;

namespace {

constexpr std::size_t kPiece = 1 << 20;
// Numbers of processes: they only have to differ, and tracks' numbers from all of them.
constexpr int kFirstDevice = 10'000, kLinks = 20'000, kFirstTrack = 100'000,
              kFaults = kFirstTrack - 1;

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Viewers count in nanoseconds; whole ones keep the order of what follows and what contains.
std::string Us(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

}  // namespace

class TraceWriter {
 public:
  TraceWriter(const Trace& trace, const std::map<node::ProcessId, int>& ranks,
              const std::function<void(std::string_view)>& sink)
      : trace_(trace), ranks_(ranks), sink_(sink) {}

  void Run() {
    out_ =
        fmt::format(R"({{"displayTimeUnit":"ns","otherData":{{"profile":{},"slices_left_out":{}}},)"
                    R"("traceEvents":[)",
                    Quoted(trace_.profile_->name), trace_.dropped_);
    Processes();
    Slices();
    Links();
    out_ += "\n]}\n";
    sink_(out_);
  }

 private:
  using Group = Trace::Group;
  using Kind = Trace::Kind;

  void Event(const std::string& text) {
    out_ += first_ ? "\n{" : ",\n{";
    out_ += text;
    out_ += '}';
    first_ = false;
    if (out_.size() < kPiece) return;
    sink_(out_);
    out_.clear();
  }
  void Metadata(const char* what, int pid, int tid, const std::string& args) {
    Event(fmt::format(R"("ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}})", what, pid, tid,
                      args));
  }
  void Process(int pid, const std::string& name) {
    Metadata("process_name", pid, 0, fmt::format(R"("name":{})", Quoted(name)));
    Metadata("process_sort_index", pid, 0, fmt::format(R"("sort_index":{})", pid));
  }

  static int PidOf(const Trace::TrackKey& key) {
    const int number = std::get<1>(key);
    return std::get<0>(key) == Group::kRank ? number + 1 : kFirstDevice + number;
  }

  void Processes() {
    int last = 0;
    for (const auto& [key, track] : trace_.tracks_) {
      const int pid = PidOf(key);
      if (pid == last) continue;
      last = pid;
      const int number = std::get<1>(key);
      if (std::get<0>(key) == Group::kRank) {
        Process(pid, fmt::format("rank {}", number));
      } else {
        Process(pid, trace_.profile_->topology.vertices[static_cast<std::size_t>(number)].name);
      }
    }
    const bool links = std::any_of(trace_.ports_.begin(), trace_.ports_.end(),
                                   [](const Bins& bins) { return !bins.bytes().empty(); });
    if (links || !trace_.faults_.empty()) Process(kLinks, "links");
    if (trace_.faults_.empty()) return;
    Metadata("thread_name", kLinks, kFaults, R"("name":"faults")");
    for (const auto& [at, fault] : trace_.faults_) {
      Event(fmt::format(R"("ph":"i","s":"g","ts":{},"pid":{},"tid":{},"name":{})",
                        Us(node::ToNs(at)), kLinks, kFaults, Quoted("fault " + fault)));
    }
  }

  std::string NameOf(const Trace::TrackKey& key) const {
    const auto& [group, number, process, id, kind] = key;
    if (kind == Kind::kThread) return fmt::format("thread {}", id);
    if (kind == Kind::kEngine) return fmt::format("copy engine {}", id);
    const auto rank = ranks_.find(process);
    const auto stream = trace_.streams_.find({number, process, id});
    std::string name = fmt::format("rank {}", rank == ranks_.end() ? -1 : rank->second);
    name += stream == trace_.streams_.end() || stream->second < 0
                ? " default stream"
                : fmt::format(" stream {}", stream->second);
    return kind == Kind::kWaits ? name + ": waits" : name;
  }

  void Slices() {
    std::vector<std::vector<std::size_t>> by_track(trace_.tracks_.size());
    for (std::size_t s = 0; s < trace_.slices_.size(); ++s)
      by_track[trace_.slices_[s].track].push_back(s);
    int tid = kFirstTrack;
    for (const auto& [key, track] : trace_.tracks_) {
      std::vector<std::size_t>& slices = by_track[track];
      if (slices.empty()) continue;
      std::sort(slices.begin(), slices.end(), [&](std::size_t a, std::size_t b) {
        return std::pair(trace_.slices_[a].begin, a) < std::pair(trace_.slices_[b].begin, b);
      });
      const int pid = PidOf(key);
      const std::string name = NameOf(key);
      // Each in the first lane that is free again.
      std::vector<std::int64_t> lanes;
      for (const std::size_t s : slices) {
        const Trace::Slice& slice = trace_.slices_[s];
        const std::int64_t begin = node::ToNs(slice.begin);
        std::size_t lane = 0;
        while (lane < lanes.size() && lanes[lane] > begin) ++lane;
        if (lane == lanes.size()) {
          lanes.push_back(0);
          const std::string lane_name = lane == 0 ? name : fmt::format("{} ({})", name, lane + 1);
          const int number = tid + static_cast<int>(lane);
          Metadata("thread_name", pid, number, fmt::format(R"("name":{})", Quoted(lane_name)));
          Metadata("thread_sort_index", pid, number, fmt::format(R"("sort_index":{})", number));
        }
        if (slice.end >= 0) lanes[lane] = node::ToNs(slice.end);
        Put(slice, pid, tid + static_cast<int>(lane), begin);
      }
      tid += static_cast<int>(lanes.size());
    }
  }

  void Put(const Trace::Slice& slice, int pid, int tid, std::int64_t begin) {
    std::string text = slice.end < 0 ? fmt::format(R"("ph":"i","s":"t","ts":{})", Us(begin))
                                     : fmt::format(R"("ph":"X","ts":{},"dur":{})", Us(begin),
                                                   Us(node::ToNs(slice.end) - begin));
    text +=
        fmt::format(R"(,"pid":{},"tid":{},"name":{})", pid, tid, Quoted(trace_.names_[slice.name]));
    if (!slice.args.empty()) text += fmt::format(R"(,"args":{{{}}})", slice.args);
    Event(text);
  }

  // A value holds until the next one: only changes are written.
  void Links() {
    const node::Topology& topology = trace_.profile_->topology;
    for (std::size_t p = 0; p < trace_.ports_.size(); ++p) {
      const Bins& bins = trace_.ports_[p];
      if (bins.bytes().empty()) continue;
      const node::Topology::Link& link = topology.links[p / 2];
      const int from = p % 2 == 0 ? link.a : link.b, to = p % 2 == 0 ? link.b : link.a;
      const std::string name =
          Quoted(fmt::format("{} > {} GB/s", topology.vertices[static_cast<std::size_t>(from)].name,
                             topology.vertices[static_cast<std::size_t>(to)].name));
      const auto put = [&](std::size_t bin, std::uint64_t bytes) {
        const double gbs = static_cast<double>(bytes) * 1e3 / static_cast<double>(bins.width());
        Event(fmt::format(R"("ph":"C","name":{},"pid":{},"ts":{},"args":{{"GB/s":{:.3f}}})", name,
                          kLinks, Us(node::ToNs(static_cast<Time>(bin) * bins.width())), gbs));
      };
      std::uint64_t value = 0;
      if (bins.bytes()[0] == 0) put(0, 0);
      for (std::size_t b = 0; b < bins.bytes().size(); ++b)
        if (bins.bytes()[b] != value) put(b, value = bins.bytes()[b]);
      if (value != 0) put(bins.bytes().size(), 0);
    }
  }

  const Trace& trace_;
  const std::map<node::ProcessId, int>& ranks_;
  const std::function<void(std::string_view)>& sink_;
  std::string out_;
  bool first_ = true;
};

void Trace::Write(const std::map<node::ProcessId, int>& ranks,
                  const std::function<void(std::string_view)>& sink) const {
  TraceWriter(*this, ranks, sink).Run();
}

}  // namespace allranks::server
