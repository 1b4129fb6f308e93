// --trace: what a run did in virtual time, as a file for Perfetto (ui.perfetto.dev) or
// chrome://tracing. A Trace listens to the machine and to the Core, keeps what it heard within
// bounds, and writes it at the end of the run.
//
//   processes  one per rank, with a track per host thread (its calls, waits included, within the
//              ranges that it has pushed by NVTX; marks), and one of the ranges that it has
//              started; one per device, with a track per stream (kernels, host functions, value
//              waits, event records), per stream of the waits of its kernels, and per copy engine;
//              and "links"
//   counters   each direction of a link: GB/s on the wire, headers included
//   flows      from a call to the operations that it has made, and from what has written to the
//              wait that the write has ended
//
// Slices of a track follow or contain each other, but copies of one engine overlap by their ways'
// latencies, and kernels by programmatic launches: such tracks are written as several.
//
// Waits. Each park of part of a warp would be a slice; instead those in one loop of one kernel are
// one wait from the first that parks to the last that wakes, and waits with next to nothing in
// between are one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "node/hardware/profile.h"
#include "node/hosts.h"
#include "node/listener.h"

namespace allranks::server {

// Bytes over time. Bins double their width when the time outgrows them.
class Bins {
 public:
  static constexpr std::size_t kMost = 2048;

  void Add(node::Time begin, node::Time end, std::uint64_t bytes);
  node::Time width() const { return node::Time{1} << shift_; }
  const std::vector<std::uint64_t>& bytes() const { return bytes_; }

 private:
  int shift_ = 16;  // 66 ns
  std::vector<std::uint64_t> bytes_;
};

class Trace final : public node::Listener {
 public:
  using Time = node::Time;
  static constexpr std::size_t kMaxSlices = 1'000'000;

  explicit Trace(std::size_t max_slices = kMaxSlices) : max_slices_(max_slices) {}
  // The machine's own, which lives until Write; before anything happens on it.
  void Attach(const node::Profile& profile);
  // Something that goes wrong on purpose at that time, as --fault names it.
  void Plan(std::string fault, Time at) { faults_.emplace_back(at, std::move(fault)); }

  void OnQueued(node::OpId op) override;
  void OnBegin(const node::OperationEvent& event) override;
  void OnEnd(node::OpId op, Time at, const node::KernelRecord* kernel) override;
  void OnPark(const node::WaitEvent& event) override;
  void OnWake(const node::WaitEvent& event) override;
  void OnPort(std::size_t port, Time begin, Time end, std::uint64_t bytes) override;
  // A thread's call is being carried out: what is queued until LeaveCall is its doing. A call that
  // has returned by then was told by OnCall before.
  void EnterCall(node::HostThread thread);
  void LeaveCall() { current_call_ = 0; }
  // A host thread was in a call. `args`: members of a JSON object.
  void OnCall(node::HostThread thread, const std::string& what, std::string args, Time begin,
              Time end);
  // `pushed`: on the thread's track; else started, on one of its own.
  void OnRange(node::HostThread thread, const std::string& domain, const std::string& name,
               bool pushed, Time begin, Time end);
  void OnMark(node::HostThread thread, const std::string& domain, const std::string& text, Time at);
  void NameThread(node::HostThread thread, const std::string& name);
  void NameStream(node::ProcessId process, node::StreamId stream, const std::string& name);
  // A text of the program's choice, in JSON's quotes.
  static std::string Quoted(const std::string& text);

  // What is still open ends at `end`; what is told afterwards is not heard.
  void Finish(Time end);
  // The file's text, in pieces; `ranks`: of the machine's processes. After Finish.
  void Write(const std::map<node::ProcessId, int>& ranks,
             const std::function<void(std::string_view)>& sink) const;

  std::uint64_t dropped() const { return dropped_; }

 private:
  enum class Group : std::uint8_t { kRank, kDevice };
  enum class Kind : std::uint8_t { kThread, kRanges, kStream, kWaits, kEngine };
  // Ordered as they are shown.
  using TrackKey = std::tuple<Group, int, node::ProcessId, std::uint64_t, Kind>;

  struct Slice {
    Time begin = 0, end = 0;  // end < 0: an instant
    std::uint32_t track = 0, name = 0;
    bool range = false;  // the program's: it contains calls of the same times
    std::string args;    // members of a JSON object
  };
  struct Open {
    Slice slice;
    node::OperationEvent::Kind kind = node::OperationEvent::Kind::kKernel;
    TrackKey waits;  // the track of its kernel's waits
  };
  struct Wait {
    int parked = 0, most = 0;
    Time begin = 0;
    Slice last;  // the wait before, which the next may continue; end < 0: none
    std::string args;
    // What has ended the last one; op 0: it is not known.
    node::OpId by = 0;
    Time written = 0;
    std::string by_place;
  };
  // An arrow to the beginning of an operation, or to the end of a wait.
  struct Flow {
    std::uint32_t to = 0;    // a slice
    std::uint64_t call = 0;  // from that call ...
    node::OpId op = 0;       // ... or from that operation at `written`
    Time written = 0;
  };

  std::uint32_t TrackOf(const TrackKey& key);
  std::uint32_t NameOf(const std::string& name);
  // The slice's number; nullopt: there are too many.
  std::optional<std::uint32_t> Keep(Slice slice);
  void KeepOperation(node::OpId op, Open& open);
  void KeepWait(Wait& wait);
  // The wait is over, by `event` if that is not null; the one before it is kept unless this one
  // continues it.
  void CloseWait(Wait& wait, const Open& open, Time at, const node::WaitEvent* event);
  void CloseWaits(node::OpId op, const Open& open, Time at);

  friend class TraceWriter;

  const node::Profile* profile_ = nullptr;
  const std::size_t max_slices_;
  std::vector<Slice> slices_;
  std::uint64_t dropped_ = 0;
  std::map<TrackKey, std::uint32_t> tracks_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> name_numbers_;
  // Streams by (device, process, id): their numbers in order of appearance; -1: the default one.
  std::map<std::tuple<int, node::ProcessId, node::StreamId>, int> streams_;
  std::map<std::pair<int, node::ProcessId>, int> stream_counts_;
  std::map<node::OpId, Open> open_;
  std::map<std::pair<node::OpId, std::uint32_t>, Wait> waits_;
  // Calls are numbered from 1. `calling_`: threads in a call; `queued_`: by which call operations
  // were made that have not ended.
  std::uint64_t calls_ = 0, current_call_ = 0;
  std::map<node::HostThread, std::uint64_t> calling_;
  std::unordered_map<node::OpId, std::uint64_t> queued_;
  std::unordered_map<std::uint64_t, std::uint32_t> call_slices_, op_slices_;
  std::vector<Flow> flows_;
  std::map<node::HostThread, std::string> thread_names_;
  std::map<std::pair<node::ProcessId, node::StreamId>, std::string> stream_names_;
  std::vector<Bins> ports_;
  std::vector<std::pair<Time, std::string>> faults_;
  bool finished_ = false;
};

}  // namespace allranks::server
