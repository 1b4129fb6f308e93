// One node and its ranks, each in a sandbox of its own, for all cases of one world size.
//
// The judge's end of the control connection. A rank's identity is the socket that its sandbox can
// see: nothing that a rank says is taken for an answer to who it is. Whatever ends here too early
// is told apart: a rank's end is the candidate's, the node's or a sandbox's is ours.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "judge/exchange.h"
#include "judge/idleness.h"
#include "judge/judge.h"
#include "judge/sandbox.h"
#include "judge/shared_folder.h"
#include "judge/verdict.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace allranks::judge {

struct Outcome {
  Verdict verdict = Verdict::kPass;
  std::string text;  // why not
  std::string log;   // more of it: waiters, what ranks printed
};

struct SessionOptions {
  const Tools* tools = nullptr;
  std::string profile;              // path
  std::string program;              // of the ranks
  std::string library;              // that it is linked with, as a file; empty: none
  std::string folder;               // scratch
  std::vector<std::string> calls;   // entry points
  std::string secret;               // hexadecimal: what handles are drawn from
  std::vector<std::string> faults;  // of the machine
  int trace_fd = -1;
  std::chrono::milliseconds cpu{};  // that node and ranks together may use
  // Once it is true nobody waits for this session: what it is asked for ends as an internal error.
  const std::atomic<bool>* abandoned = nullptr;
  bool check = false;                               // runs may be checked
  std::uint64_t input_bytes = 0, output_bytes = 0;  // the most of one run
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> Start(const SessionOptions& options,
                                                const wire::JudgePlan& plan);
  ~Session();

  // Waits until every rank has delivered every case.
  Outcome Capture();
  // Nothing of the candidate's host code lives after this.
  void EndRanks();
  Outcome Run(const wire::JudgeRun& run, wire::JudgeRunReply* reply);
  // Ends everything, lets the node write its trace.
  void End();

  std::span<std::byte> inputs() const { return inputs_->bytes(); }
  std::span<const std::byte> outputs() const { return outputs_->bytes(); }
  // A query's answer comes in a message; the judge puts it where outputs are.
  std::span<std::byte> outputs_for_answers() const { return outputs_->bytes(); }
  // Outputs have been compared: they take no memory until there are others.
  void ClearOutputs() const { outputs_->Clear(); }
  bool traced() const { return traced_; }
  bool ended() const { return ended_; }  // its node has ended by itself
  double rank_seconds() const { return rank_seconds_; }
  double node_seconds() const { return node_seconds_; }

 private:
  Session() = default;
  Status StartNode(const SessionOptions& options, const wire::JudgePlan& plan);
  Status StartRanks(const SessionOptions& options, const wire::JudgePlan& plan);
  void AddLibrary(const SessionOptions& options, bool multicast, SandboxSpec* spec) const;
  // The next frame of the node; polls sandboxes meanwhile. Nothing: see *outcome.
  std::optional<wire::Frame> Next(Outcome* outcome);
  Outcome RankEnded(std::size_t rank);
  Outcome RankLost(std::size_t rank);
  Outcome NodeEnded();
  Outcome Told(const wire::JudgeNews& news);
  // What the node may use if ranks use so much.
  std::chrono::milliseconds NodeCpu(std::chrono::milliseconds ranks) const;

  std::optional<MemoryFile> inputs_, outputs_;
  std::vector<wire::Fd> listening_;
  wire::Fd control_;
  wire::FrameReader reader_;
  std::unique_ptr<Sandbox> node_;
  std::vector<std::unique_ptr<Sandbox>> ranks_;
  std::optional<SharedFolder> shared_;  // of ranks with a library
  std::string topology_;                // of their host, likewise
  std::uint64_t sequence_ = 0;
  bool delivered_ = false;  // a rank's end is of no importance
  bool traced_ = false;
  bool ended_ = false;
  double rank_seconds_ = 0, node_seconds_ = 0;
  const std::atomic<bool>* abandoned_ = nullptr;
  Idleness idle_;
  std::chrono::milliseconds most_idle_{};
  std::chrono::milliseconds cpu_{};  // of all together
};

}  // namespace allranks::judge
