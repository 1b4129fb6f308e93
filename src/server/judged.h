// A judged run on the node's side: the memory of its cases, what each rank is told to do, what it
// may do, and the windows in which its work is watched. A group of handlers like those in calls.h,
// and what the Core asks in a judged run; wire/judge_messages.h has the way of one.
//
// Theory of operation. Ranks are known before they come: rank i is whoever connects first through
// the i-th listening socket, and nothing else about a process is believed (its pid may be 0 here).
// Their processes of the machine are made at the start and never removed, so what a rank has
// delivered outlives it. Until the plan is there nothing happens; then each rank's JudgeNext walks
// through the same list of steps. A graph window needs no ranks: graphs are launched on streams of
// the judge's own, between two actions of the node, and the machine is run until nothing is left.
// In the other windows the ranks do the same by messages.
//
// Windows look alike. A graph window runs in a copy of the node, made by fork when all ranks have
// delivered, so that each begins with the same memory, addresses, counters and caches, whatever ran
// before it; it begins at a drawn time; and what disturbs it begins at a drawn time, too. A
// candidate that behaves otherwise in one of them must have guessed. Where ranks are alive there is
// no such copy: there the judge draws the order of the windows. In each window a rank reaches the
// memory of its case and of no other.
//
// What a rank may not do is answered with an error and told to the judge, who ends the run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "node/checking.h"
#include "node/hosts.h"
#include "node/machine.h"
#include "server/desk.h"
#include "server/judged_rules.h"
#include "server/options.h"
#include "server/run_control.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace allranks::server {

class Judged final : public JudgedRules {
 public:
  using Thread = node::HostThread;
  using Time = node::Time;

  Judged(Desk& desk, RunControl& control, JudgedOptions options);

  // A request of the judge's; false: it is none, or malformed.
  bool Received(const wire::Frame& frame);

  // --- for the Core
  bool planned() const { return planned_; }
  // What a rank says of itself is no ground for `unsupported`, which does not count against it.
  void Answered(std::int32_t rank, node::Status status) override {
    if (rank >= 0 && static_cast<std::size_t>(rank) < ranks_.size() &&
        (status == node::Status::kNotSupported || status == node::Status::kInvalidPtx))
      ranks_[static_cast<std::size_t>(rank)].lacked = true;
  }
  // From the first graph window on no rank is listened to.
  bool sealed() const { return sealed_; }
  bool host_window() const override { return plan_.window == wire::JudgeWindow::kHost; }
  bool library() const override { return plan_.rules.library; }
  // The thread that a new image's hello through the rank's socket stands for; nullopt: there has
  // been one already.
  std::optional<Thread> Join(int rank);
  void Violated(int rank, const std::string& why);
  void RankEnded(std::int32_t rank, Time at);
  // Everybody has been served: only the judge can go on.
  bool WaitsForJudge() const { return ready_ && !run_; }
  bool RunsGraphs() const { return run_ && plan_.window == wire::JudgeWindow::kGraph; }
  // Graph windows run in copies of the process, which write traces themselves.
  bool splits() const { return options_.split && plan_.window == wire::JudgeWindow::kGraph; }
  // The machine has been run as far as it goes by itself.
  void GraphsOver();
  void Deadlocked();
  void MadeGraph(std::int32_t rank, node::GraphId graph) override { Of(rank).graphs.insert(graph); }
  // Why a rank may not do this; empty: it may.
  template <class M>
  std::string Refusal(Thread thread, const M& message) {
    std::string why = RefusedCall(thread, wire::kOpOf<M>);
    if constexpr (requires { message.stream.stream; })
      if (why.empty()) why = RefusedStream(thread.rank, wire::kOpOf<M>, message.stream.stream);
    return why.empty() ? RefusedArguments(thread.rank, message) : why;
  }
  void Forbidden(std::int32_t rank, const std::string& why) override;
  bool IsOwnModule(const node::ModuleImage& image) const override;
  bool TakePinned(std::int32_t rank, std::uint64_t size, node::PinnedMemory* memory) override;

  void Handle(Thread thread, const wire::JudgeNext& message, Time at);
  void Handle(Thread thread, const wire::JudgeOpen& message, Time at);
  void Handle(Thread thread, const wire::JudgeClose& message, Time at);
  void Handle(Thread thread, const wire::JudgeGather& message, Time at);
  void Handle(Thread thread, const wire::JudgeHostStep& message, Time at);

 private:
  using Do = wire::JudgeNextReply::Do;
  using End = wire::JudgeRunReply::End;
  using NewsKind = wire::JudgeNews::Kind;

  // What a rank is doing; decides what it may ask for.
  enum class Phase : std::uint8_t { kBefore, kSetup, kCapture, kWindow, kServed };
  struct Step {
    Do what = Do::kEnd;
    std::uint32_t case_index = 0;
  };
  struct Pinned {
    node::PinnedMemory memory;
    std::uint32_t case_index = 0;
    bool taken = false;
  };
  struct Given {
    std::uint64_t size = 0;
    std::uint32_t case_index = 0;
  };
  struct Rank {
    node::ProcessId process = 0;
    int device = 0;  // ordinal
    int host = 0;
    node::StreamId stream = 0;
    bool joined = false, ended = false;
    bool served = false;  // it has done all steps
    Phase phase = Phase::kBefore;
    std::size_t step = 0;           // the next one
    std::optional<Step> told;       // what its next JudgeNext is about
    std::optional<Thread> waiting;  // in JudgeNext, for the judge or for other ranks
    std::set<node::GraphId> graphs;
    std::vector<node::GraphId> delivered;             // by case
    std::map<node::Address, Given> given;             // the plan's memory, by base
    std::vector<std::vector<node::Address>> tensors;  // by case and tensor
    std::vector<wire::Blob> args;                     // by case
    std::vector<Pinned> pinned;
    std::string forbidden;           // the first thing that it was refused
    bool lacked = false;             // the node itself has answered that it cannot do something
    bool opened = false;             // a window's call
    std::uint32_t calls = 0;         // of this window that it has closed
    std::uint64_t given_stream = 0;  // of the call that is open
  };
  struct Window {
    std::uint64_t sequence = 0;
    wire::JudgeRun request;
    wire::JudgeRunReply reply;
    std::uint64_t cpu_us = 0;  // of the node before it
    Time begin = 0;
    Time disturbed = 0;  // from when on; 0: all of it
    std::vector<node::LinkRecord> links;
    std::array<node::MoverRecord, node::kMovers> moved{};
    std::uint64_t instructions = 0;
    // Where host code is held up (0: nowhere), and the steps that might have been so far.
    std::uint64_t stalls = 0, host_steps = 0;
    std::vector<std::uint32_t> closed;  // ranks that have, by call
    // Ranks whose JudgeOpen waits until all have closed the call before.
    std::vector<std::pair<Thread, wire::JudgeOpen>> drained;
  };

  Rank& Of(std::int32_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  static std::string Printable(const std::string& text);
  void News(NewsKind kind, std::int32_t rank, const std::string& text);
  template <class M>
  void Answer(std::uint64_t sequence, node::Status status, const typename M::Reply& reply = {});

  // --- judged.cpp: the steps
  void Deliver(Thread thread, const wire::JudgeNext& message, Time at);
  void Advance(Thread thread, Time at);
  void Tell(Rank& rank, Thread thread, Step step, std::uint32_t calls);
  // A call of the candidate failed: the news is about what lies behind that.
  void Failed(std::int32_t rank, std::int32_t status, const std::string& text);
  void Served(Time at);
  // How long a step of host code is held up.
  Time HostStall(const wire::JudgeHostStep& message);
  // There are no more windows.
  void Break(End end, std::int32_t rank);

  // --- judged_memory.cpp
  node::Status Plan(wire::JudgePlan plan);
  node::Status PlaceCase(std::uint32_t index);
  node::Status PlaceShared(std::uint32_t index, const wire::JudgeTensor& tensor,
                           std::vector<std::vector<node::Address>>* at,
                           std::vector<node::Address>* multicast);

  // --- judged_run.cpp: windows
  void Start(std::uint64_t sequence, wire::JudgeRun run);
  bool Valid(const wire::JudgeRun& run) const;
  void CloseRanks();
  // Only the memory of this case can be reached from here on.
  void Confine(std::uint32_t case_index);
  bool EnqueueGraph(std::int32_t rank, std::uint32_t call, Time at);
  Time DelayOf(std::int32_t rank, std::uint32_t call, Time at) const;
  void Open(std::int32_t rank, std::uint32_t call, Time at);
  void Close(std::int32_t rank, std::uint32_t call, Time at);
  void OpenInStream(Thread thread, const wire::JudgeOpen& message, Time at);
  void AllReturned();
  const node::Fault* FirstFault() const;
  void FinishByFault();
  void FinishByFailure(std::int32_t rank, const wire::JudgeNext& message);
  void LetGo(const wire::JudgeRun& run);
  void Finish(End end, std::int32_t rank, std::string text);
  static node::Schedule ScheduleOf(const Window& run);
  // What is looked for from here on. Only while nothing is under way.
  void Check(bool on, const node::Schedule& schedule);
  node::StreamId StreamOf(std::int32_t rank, std::uint64_t stream);

  // --- judged_policy.cpp: what is allowed
  std::string RefusedCall(Thread thread, wire::Op op);
  std::string RefusedStream(std::int32_t rank, wire::Op op, std::uint64_t stream);
  template <class M>
  std::string RefusedArguments(std::int32_t, const M&) {
    return {};
  }
  std::string RefusedArguments(std::int32_t rank, const wire::PutGraph& message);
  std::string RefusedArguments(std::int32_t rank, const wire::DropGraph& message);
  std::string RefusedArguments(std::int32_t rank, const wire::Launch& message);
  std::string RefusedArguments(std::int32_t rank, const wire::Free& message);
  std::string RefusedArguments(std::int32_t rank, const wire::FreeAsync& message);
  std::string RefusedArguments(std::int32_t rank, const wire::FreePinned& message);
  std::string RefusedArguments(std::int32_t rank, const wire::RegisterHost& message);
  std::string RefusedArguments(std::int32_t rank, const wire::CreateMemory& message);
  std::string RefusedArguments(std::int32_t rank, const wire::IpcClose& message);
  std::string RefusedArguments(std::int32_t rank, const wire::UnmapMemory& message);
  std::string RefusedArguments(std::int32_t rank, const wire::FreeAddress& message);
  std::string RefusedArguments(std::int32_t rank, const wire::SetMemoryAccess& message);
  std::string RefusedArguments(std::int32_t rank, const wire::RetainMemory& message);
  std::string RefusedKernel(std::int32_t rank, int device, const wire::Launch& launch);
  std::string RefusedGiven(std::int32_t rank, std::uint64_t address, std::uint64_t size,
                           const char* what);

  Desk& desk_;
  RunControl& control_;
  node::Hosts& hosts_;
  node::Machine& machine_;
  JudgedOptions options_;
  std::vector<Rank> ranks_;
  bool planned_ = false, ready_ = false, sealed_ = false;
  wire::JudgePlan plan_;
  std::vector<Step> steps_;
  std::optional<Window> run_;
  std::optional<wire::JudgeRunReply> broken_;  // the end after which there are no more windows
  std::vector<std::optional<std::pair<Thread, wire::Blob>>> gather_;  // by rank
  std::size_t faults_seen_ = 0;
  bool copy_ = false;    // this process is one, for the window under way
  bool stayed_ = false;  // the last run, for one that goes on from there
  int news_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace allranks::server
