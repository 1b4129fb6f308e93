// A trace as JSON in Chrome's trace event format: an object with the list `traceEvents`, in which
// times are microseconds. Metadata (M) names processes and tracks, complete events (X) are slices,
// instants (i) event records and marks, counters (C) the use of links, flow events (s, f) arrows
// between slices: each end lies within the slice that it belongs to.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_map>

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
    CountStarts();
    Slices();
    Flows();
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
    if (kind == Kind::kThread || kind == Kind::kRanges) {
      const auto named = trace_.thread_names_.find({number, static_cast<std::uint32_t>(id)});
      std::string thread = fmt::format("thread {}", id);
      if (named != trace_.thread_names_.end()) thread += fmt::format(" ({})", named->second);
      return kind == Kind::kThread ? thread : thread + ": ranges";
    }
    if (kind == Kind::kEngine) return fmt::format("copy engine {}", id);
    const auto rank = ranks_.find(process);
    const auto stream = trace_.streams_.find({number, process, id});
    std::string name = fmt::format("rank {}", rank == ranks_.end() ? -1 : rank->second);
    name += stream == trace_.streams_.end() || stream->second < 0
                ? " default stream"
                : fmt::format(" stream {}", stream->second);
    if (const auto named = trace_.stream_names_.find({process, id});
        named != trace_.stream_names_.end())
      name += fmt::format(" ({})", named->second);
    return kind == Kind::kWaits ? name + ": waits" : name;
  }

  // What a call's own slice says of what it has started.
  struct Starts {
    std::uint32_t first = 0;  // a name
    int count = 0;
  };
  void CountStarts() {
    places_.resize(trace_.slices_.size());
    for (const Trace::Flow& flow : trace_.flows_) {
      const auto call = trace_.call_slices_.find(flow.call);
      if (flow.call == 0 || call == trace_.call_slices_.end()) continue;
      Starts& starts = starts_[call->second];
      if (starts.count++ == 0) starts.first = trace_.slices_[flow.to].name;
    }
  }

  // Of slices of a track: what contains others comes before them.
  auto Order(std::size_t s) const {
    const Trace::Slice& slice = trace_.slices_[s];
    return std::tuple(slice.begin, -slice.end, !slice.range,
                      slice.range ? -NumberOf(s) : NumberOf(s));
  }
  static std::int64_t NumberOf(std::size_t s) { return static_cast<std::int64_t>(s); }

  void Slices() {
    std::vector<std::vector<std::size_t>> by_track(trace_.tracks_.size());
    for (std::size_t s = 0; s < trace_.slices_.size(); ++s)
      by_track[trace_.slices_[s].track].push_back(s);
    int tid = kFirstTrack;
    for (const auto& [key, track] : trace_.tracks_) {
      std::vector<std::size_t>& slices = by_track[track];
      if (slices.empty()) continue;
      std::sort(slices.begin(), slices.end(),
                [&](std::size_t a, std::size_t b) { return Order(a) < Order(b); });
      const int pid = PidOf(key);
      const std::string name = NameOf(key);
      // Each in the first lane that is free again, or whose open slices contain it: calls lie
      // within ranges. Other slices never lie within each other; operations that happen to are
      // beside each other.
      const bool nests = std::get<Kind>(key) == Kind::kThread;
      std::vector<std::vector<std::int64_t>> lanes;  // ends of the open slices, outermost first
      for (const std::size_t s : slices) {
        const Trace::Slice& slice = trace_.slices_[s];
        const std::int64_t begin = node::ToNs(slice.begin);
        const std::int64_t end = slice.end >= 0 ? node::ToNs(slice.end) : begin;
        std::size_t lane = 0;
        for (; lane < lanes.size(); ++lane) {
          std::vector<std::int64_t>& open = lanes[lane];
          while (!open.empty() && open.back() <= begin) open.pop_back();
          if (open.empty() || (nests && end <= open.back()) || slice.end < 0) break;
        }
        if (lane == lanes.size()) {
          lanes.emplace_back();
          const std::string lane_name = lane == 0 ? name : fmt::format("{} ({})", name, lane + 1);
          const int number = tid + static_cast<int>(lane);
          Metadata("thread_name", pid, number, fmt::format(R"("name":{})", Quoted(lane_name)));
          Metadata("thread_sort_index", pid, number, fmt::format(R"("sort_index":{})", number));
        }
        if (slice.end >= 0) lanes[lane].push_back(end);
        places_[s] = {pid, tid + static_cast<int>(lane)};
        Put(s, begin);
      }
      tid += static_cast<int>(lanes.size());
    }
  }

  void Put(std::size_t s, std::int64_t begin) {
    const Trace::Slice& slice = trace_.slices_[s];
    std::string text = slice.end < 0 ? fmt::format(R"("ph":"i","s":"t","ts":{})", Us(begin))
                                     : fmt::format(R"("ph":"X","ts":{},"dur":{})", Us(begin),
                                                   Us(node::ToNs(slice.end) - begin));
    text += fmt::format(R"(,"pid":{},"tid":{},"name":{})", places_[s].first, places_[s].second,
                        Quoted(trace_.names_[slice.name]));
    std::string args = slice.args;
    if (const auto starts = starts_.find(s); starts != starts_.end()) {
      std::string what = trace_.names_[starts->second.first];
      if (starts->second.count > 1) what += fmt::format(" and {} more", starts->second.count - 1);
      args += fmt::format(R"({}"starts":{})", args.empty() ? "" : ",", Quoted(what));
    }
    if (!args.empty()) text += fmt::format(R"(,"args":{{{}}})", args);
    Event(text);
  }

  // One end of an arrow, at a time within the slice.
  void End(char phase, std::size_t id, const char* name, std::size_t s, std::int64_t at) {
    const Trace::Slice& slice = trace_.slices_[s];
    const std::int64_t begin = node::ToNs(slice.begin), end = node::ToNs(slice.end);
    // A slice does not contain its end.
    at = std::clamp(at, begin, std::max(begin, end - 1));
    Event(fmt::format(R"("ph":"{}",{}"id":{},"cat":"{}","name":"{}","ts":{},"pid":{},"tid":{})",
                      phase, phase == 'f' ? R"("bp":"e",)" : "", id, name, name, Us(at),
                      places_[s].first, places_[s].second));
  }

  void Flows() {
    std::size_t id = 0;
    for (const Trace::Flow& flow : trace_.flows_) {
      const auto& sources = flow.call != 0 ? trace_.call_slices_ : trace_.op_slices_;
      const auto from = sources.find(flow.call != 0 ? flow.call : flow.op);
      if (from == sources.end()) continue;
      const Trace::Slice& to = trace_.slices_[flow.to];
      ++id;
      if (flow.call != 0) {
        End('s', id, "launch", from->second, node::ToNs(trace_.slices_[from->second].begin));
        End('f', id, "launch", flow.to, node::ToNs(to.begin));
      } else {
        End('s', id, "write", from->second, node::ToNs(flow.written));
        End('f', id, "write", flow.to, node::ToNs(to.end));
      }
    }
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
  std::vector<std::pair<int, int>> places_;         // by slice: process and track
  std::unordered_map<std::size_t, Starts> starts_;  // by slice of a call
};

void Trace::Write(const std::map<node::ProcessId, int>& ranks,
                  const std::function<void(std::string_view)>& sink) const {
  TraceWriter(*this, ranks, sink).Run();
}

}  // namespace allranks::server
