#include "judge/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "node/hardware/pcie.h"
#include "node/hardware/profile.h"
#include "wire/listen.h"

namespace allranks::judge {

namespace {

namespace fs = std::filesystem;
using wire::Fd;

constexpr int kIllegalAddress = 700;  // CUresult
constexpr int kMisaligned = 716;
constexpr int kInvalidAddressSpace = 717;
constexpr int kTracePatienceMs = 120'000;
// Node and ranks together stay below 4 GB.
constexpr std::uint64_t kNodeMemory = 2560ull << 20, kRanksMemory = 1280ull << 20;
constexpr std::uint64_t kMostRankMemory = 512ull << 20;
// Where ranks only set up and capture, an honest one takes hundredths of a second. Where they live
// through all windows they share a third of what a judgement has. Threads of NCCL poll sockets
// while other ranks set up: the busier the machine, the longer.
constexpr std::chrono::milliseconds kRankCpu{1500}, kLiveRanksCpu{20'000}, kNcclRanksCpu{40'000};
// A library's own code and constants count where they are first touched.
constexpr std::uint64_t kLibraryMemory = 768ull << 20;
// NCCL allocates buffers for every peer and channel and uses few of them.
constexpr std::uint64_t kNcclAllocations = 128ull << 30;
constexpr char kLibraryFolder[] = "/allranks/library",
               kLibrary[] = "/allranks/library/libnccl.so.2",
               kTopology[] = "/allranks/topology.xml";

constexpr std::chrono::milliseconds kLeastNodeCpu{1000};

std::chrono::milliseconds RankCpu(const wire::JudgePlan& plan) {
  const std::uint32_t world = std::max(plan.world, 1u);
  if (plan.rules.library) return kNcclRanksCpu / world;
  return plan.window == wire::JudgeWindow::kGraph ? kRankCpu : kLiveRanksCpu / world;
}

// A rank only sets up and captures; its real work is the node's.
SandboxLimits RankLimits(const wire::JudgePlan& plan) {
  SandboxLimits limits;
  limits.memory_bytes = std::min(kMostRankMemory, kRanksMemory / std::max(plan.world, 1u));
  if (plan.rules.library) limits.memory_bytes = kLibraryMemory;
  limits.file_bytes = 0;
  limits.processes = 32;
  limits.cpu = RankCpu(plan);
  limits.idle = std::chrono::hours(24);  // they wait for the node: Session looks at all together
  limits.output_bytes = 64 << 10;
  return limits;
}

// The node is ours; its bounds catch what fuel does not.
SandboxLimits NodeLimits(std::chrono::milliseconds cpu) {
  SandboxLimits limits;
  limits.memory_bytes = kNodeMemory;
  limits.file_bytes = 0;
  limits.processes = 16;
  limits.descriptors = 4096;
  limits.cpu = cpu;
  limits.idle = std::chrono::hours(24);
  limits.output_bytes = 1 << 20;
  return limits;
}

// For ranks, which are other users: its folder keeps everybody else out.
Result<Fd> ListenForRanks(const std::string& path) {
  Result<Fd> fd = wire::Listen(path, 64);
  if (fd && chmod(path.c_str(), 0666) != 0)
    return Fail("cannot open {} to ranks: {}", path, std::strerror(errno));
  return fd;
}

Outcome Internal(std::string text) { return {Verdict::kInternalError, std::move(text), ""}; }

Verdict OfFault(int status) {
  return status == kIllegalAddress || status == kMisaligned || status == kInvalidAddressSpace
             ? Verdict::kMemoryError
             : Verdict::kCrash;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::Start(const SessionOptions& options,
                                                const wire::JudgePlan& plan) {
  std::unique_ptr<Session> session(new Session);
  session->cpu_ = options.cpu;
  session->abandoned_ = options.abandoned;
  session->most_idle_ = std::chrono::milliseconds(options.tools->idle_ms);
  Result<MemoryFile> inputs = MemoryFile::Make("inputs", options.input_bytes, true);
  if (!inputs) return Fail(inputs.error());
  session->inputs_ = std::move(*inputs);
  Result<MemoryFile> outputs = MemoryFile::Make("outputs", options.output_bytes, false);
  if (!outputs) return Fail(outputs.error());
  session->outputs_ = std::move(*outputs);
  for (std::uint32_t rank = 0; rank < plan.world; ++rank) {
    const std::string folder = fmt::format("{}/{}", options.folder, rank);
    if ((mkdir(folder.c_str(), 0711) != 0 && errno != EEXIST) || chmod(folder.c_str(), 0711) != 0)
      return Fail("cannot create the folder {}: {}", folder, std::strerror(errno));
    const std::string path = folder + "/socket";
    std::error_code ignored;
    fs::remove(path, ignored);
    Result<Fd> listening = ListenForRanks(path);
    if (!listening) return Fail(listening.error());
    session->listening_.push_back(std::move(*listening));
  }
  if (const Status started = session->StartNode(options, plan); !started)
    return Fail(started.error());
  if (const Status started = session->StartRanks(options, plan); !started)
    return Fail(started.error());
  session->listening_.clear();  // from here on only the node has them
  return session;
}

Status Session::StartNode(const SessionOptions& options, const wire::JudgePlan& plan) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Fail("socketpair: {}", std::strerror(errno));
  control_ = Fd(ends[0]);
  const Fd theirs(ends[1]);
  const fs::path profile = fs::absolute(options.profile);
  SandboxSpec spec;
  spec.name = "node";
  spec.filter = SandboxSpec::Filter::kNode;
  spec.trusted = options.tools->trusted;
  spec.limits = NodeLimits(options.cpu);
  spec.no_address_randomization = true;
  // A profile may extend another one beside it.
  spec.binds = {{options.tools->allranks, "/allranks/bin/allranks", false},
                {profile.parent_path().string(), "/allranks/profiles", false}};
  spec.command = {"/allranks/bin/allranks",
                  "node",
                  "--control",
                  std::to_string(theirs.get()),
                  "--profile",
                  "/allranks/profiles/" + profile.filename().string(),
                  "--judge-inputs",
                  std::to_string(inputs_->fd()),
                  "--judge-outputs",
                  std::to_string(outputs_->fd()),
                  "--secret",
                  options.secret};
  spec.descriptors = {theirs.get(), inputs_->fd(), outputs_->fd()};
  for (const Fd& listening : listening_) {
    spec.command.insert(spec.command.end(), {"--judge-listen", std::to_string(listening.get())});
    spec.descriptors.push_back(listening.get());
  }
  if (!options.library.empty()) {
    // It reads the library's kernels where they are.
    spec.binds.push_back({options.library, kLibrary, false});
    spec.command.insert(spec.command.end(), {"--judge-library", kLibrary, "--memory-limit",
                                             std::to_string(kNcclAllocations)});
  }
  for (const std::string& fault : options.faults)
    spec.command.insert(spec.command.end(), {"--fault", fault});
  if (options.check) spec.command.push_back("--check");
  traced_ = options.trace_fd >= 0;
  if (traced_) {
    spec.command.insert(spec.command.end(), {"--trace-fd", std::to_string(options.trace_fd)});
    spec.descriptors.push_back(options.trace_fd);
  }
  Result<std::unique_ptr<Sandbox>> node = Sandbox::Start(spec);
  if (!node) return Fail(node.error());
  node_ = std::move(*node);
  node_->SetCpu(NodeCpu(RankCpu(plan) * plan.world));  // until it is known what ranks have used
  if (!wire::SendFrame(control_.get(), wire::kOpOf<wire::JudgePlan>, ++sequence_,
                       wire::EncodePayload(wire::RequestHeader{}, plan)))
    return Fail("{}", NodeEnded().text);
  return Ok();
}

Status Session::StartRanks(const SessionOptions& options, const wire::JudgePlan& plan) {
  if (!options.library.empty()) {
    const Result<node::Profile> profile = node::LoadProfile(options.profile);
    if (!profile) return Fail(profile.error());
    topology_ = node::NcclTopology(*profile);
    Result<SharedFolder> shared = SharedFolder::Make(options.folder + "/shm");
    if (!shared) return Fail(shared.error());
    shared_ = std::move(*shared);
  }
  for (std::uint32_t rank = 0; rank < plan.world; ++rank) {
    SandboxSpec spec;
    spec.name = fmt::format("rank {}", rank);
    spec.limits = RankLimits(plan);
    spec.trusted = options.tools->trusted;
    spec.no_address_randomization = true;
    spec.binds = {{options.program, "/allranks/rank", false},
                  {options.tools->shim, "/allranks/shim", false},
                  {fmt::format("{}/{}", options.folder, rank), "/node", false}};
    spec.environment = {"ALLRANKS_SOCKET=/node/socket", "LD_LIBRARY_PATH=/allranks/shim",
                        "LD_PRELOAD=/allranks/shim/liballranks_host.so"};
    spec.command = {"/allranks/rank"};
    spec.command.insert(spec.command.end(), options.calls.begin(), options.calls.end());
    if (!options.library.empty()) AddLibrary(options, plan.rules.multicast, &spec);
    Result<std::unique_ptr<Sandbox>> started = Sandbox::Start(spec);
    if (!started) return Fail(started.error());
    ranks_.push_back(std::move(*started));
    if (!options.library.empty() && rank == 0 && !ranks_[0]->AwaitStart())
      return Fail("{}", RankEnded(0).text);
  }
  return Ok();
}

// Ranks of a library find each other through it: by TCP in one network namespace, which has
// nothing but loopback, and by what it reads of /proc. It brings the static CUDA runtime along,
// which is redirected as `allranks exec` does it.
void Session::AddLibrary(const SessionOptions& options, bool multicast, SandboxSpec* spec) const {
  spec->filter = SandboxSpec::Filter::kTeam;
  spec->proc = true;
  spec->binds.push_back({options.library, kLibrary, false});
  // NCCL takes ranks for members of one host if they have this folder in common, and connects to
  // multicast objects by a file in it.
  spec->binds.push_back({shared_->path(), "/dev/shm", true});
  spec->environment = {
      "ALLRANKS_SOCKET=/node/socket",
      fmt::format("LD_LIBRARY_PATH=/allranks/shim:{}", kLibraryFolder),
      "LD_PRELOAD=/allranks/shim/liballranks_host.so:/allranks/shim/libcudart.so.13",
      "LD_AUDIT=/allranks/shim/liballranks_audit.so",
      "NCCL_RAS_ENABLE=0",         // a service for others, which would wait for ever
      "NCCL_CUMEM_HOST_ENABLE=0",  // host memory by handles is refused
      // It would map a problem's tensors for peers, whatever the problem says of them.
      "NCCL_GRAPH_REGISTER=0", "NCCL_LOCAL_REGISTER=0",
      fmt::format("NCCL_TOPO_FILE={}", kTopology)};
  spec->files.push_back({kTopology, topology_});
  if (!multicast) spec->environment.emplace_back("NCCL_NVLS_ENABLE=0");
  if (!ranks_.empty()) spec->network_of = ranks_.front().get();
}

Session::~Session() { End(); }

std::chrono::milliseconds Session::NodeCpu(std::chrono::milliseconds ranks) const {
  return std::max(cpu_ - ranks, kLeastNodeCpu);
}

void Session::EndRanks() {
  for (const auto& rank : ranks_) rank->Kill();
  for (const auto& rank : ranks_) rank_seconds_ += rank->Wait().cpu_seconds;
  ranks_.clear();
  shared_.reset();
  // What they have left is the node's.
  if (node_ != nullptr)
    node_->SetCpu(NodeCpu(std::chrono::milliseconds(static_cast<int>(rank_seconds_ * 1e3))));
}

void Session::End() {
  EndRanks();
  if (node_ == nullptr) return;
  if (traced_ && wire::SendFrame(control_.get(), wire::Op::kFinish, ++sequence_,
                                 wire::EncodePayload(wire::RequestHeader{}, wire::Finish{}))) {
    pollfd wait{control_.get(), POLLIN, 0};
    poll(&wait, 1, kTracePatienceMs);
  }
  control_ = Fd();
  node_->Kill();
  node_seconds_ += node_->Wait().cpu_seconds;
  node_.reset();
}

std::optional<wire::Frame> Session::Next(Outcome* outcome) {
  for (;;) {
    wire::Frame frame;
    switch (reader_.Read(control_.get(), 0, &frame)) {
      case wire::FrameReader::State::kFrame:
        return frame;
      case wire::FrameReader::State::kMore:
        break;
      case wire::FrameReader::State::kClosed:
      case wire::FrameReader::State::kBad:
        *outcome = NodeEnded();
        return std::nullopt;
    }
    std::vector<pollfd> polls = {{control_.get(), POLLIN, 0}};
    auto patience = std::chrono::milliseconds(60'000);
    const auto watch = [&](const Sandbox& sandbox) {
      for (const int fd : sandbox.descriptors()) polls.push_back({fd, POLLIN, 0});
      patience = std::min(patience, sandbox.Patience());
    };
    watch(*node_);
    for (const auto& rank : ranks_) watch(*rank);
    if (shared_) polls.push_back({shared_->descriptor(), POLLIN, 0});
    if (poll(polls.data(), polls.size(), static_cast<int>(patience.count())) < 0 &&
        errno != EINTR) {
      *outcome = Internal(fmt::format("poll: {}", std::strerror(errno)));
      return std::nullopt;
    }
    if (abandoned_ != nullptr && *abandoned_) {
      *outcome = Internal("the session is abandoned");
      return std::nullopt;
    }
    if (polls[0].revents != 0) continue;  // the node's word on a rank comes before its end
    if (node_->Poll()) {
      *outcome = NodeEnded();
      return std::nullopt;
    }
    if (shared_ && shared_->Overfull()) {
      *outcome = {
          Verdict::kCrash,
          fmt::format("the ranks make more than {} files in /dev/shm", SharedFolder::kMostFiles),
          ""};
      return std::nullopt;
    }
    double used = node_->CpuSeconds();
    for (const auto& rank : ranks_) used += rank->CpuSeconds();
    if (idle_.For(Idleness::Clock::now(), used) > most_idle_) {
      *outcome = ranks_.empty()
                     ? Internal("the node stopped making progress")
                     : Outcome{Verdict::kTimeout,
                               "the ranks wait on the host for an event that never occurs", ""};
      return std::nullopt;
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (!ranks_[rank]->Poll() || delivered_) continue;
      // An end by itself is told by the node, too, and with more knowledge.
      const SandboxEnd::Why why = ranks_[rank]->end().why;
      if (why == SandboxEnd::Why::kExit || why == SandboxEnd::Why::kSignal) continue;
      *outcome = RankEnded(rank);
      return std::nullopt;
    }
  }
}

Outcome Session::NodeEnded() {
  ended_ = true;
  // It has closed its connection and will end by itself, for a reason that is to be known.
  constexpr int kGraceSteps = 200, kStepMs = 10;
  for (int i = 0; i < kGraceSteps && !node_->Poll(); ++i) poll(nullptr, 0, kStepMs);
  node_->Kill();
  const SandboxEnd& end = node_->Wait();
  // Its bounds are far beyond any honest candidate's needs: who exhausts them does so by intent.
  if (end.why == SandboxEnd::Why::kMemory)
    return {Verdict::kCrash, "the candidate uses more device memory than the judge can provide",
            ""};
  if (end.why == SandboxEnd::Why::kCpu)
    return {Verdict::kTimeout, "the kernels exceed the CPU time of a judgement", ""};
  std::string how = end.text;
  switch (end.why) {
    case SandboxEnd::Why::kExit:
      how = fmt::format("exited with code {}", end.code);
      break;
    case SandboxEnd::Why::kSignal:
      how = fmt::format("was killed by signal {}", end.code);
      break;
    case SandboxEnd::Why::kIdle:
      how = "stopped making progress";
      break;
    case SandboxEnd::Why::kKilled:
      how = "closed its connection";
      break;
    default:
      break;
  }
  return {Verdict::kInternalError, "the node " + how, end.err};
}

// The node has lost it. Its connection may be all that it closed.
Outcome Session::RankLost(std::size_t rank) {
  constexpr int kGraceSteps = 300, kStepMs = 10;
  for (int i = 0; i < kGraceSteps && !ranks_[rank]->Poll(); ++i) poll(nullptr, 0, kStepMs);
  if (ranks_[rank]->Poll()) return RankEnded(rank);
  return {Verdict::kCrash, fmt::format("rank {} closed its connection to the node", rank), ""};
}

Outcome Session::RankEnded(std::size_t rank) {
  const SandboxEnd& end = ranks_[rank]->Wait();
  Outcome outcome{Verdict::kCrash, "", end.err};
  switch (end.why) {
    case SandboxEnd::Why::kExit:
      outcome.text =
          fmt::format("rank {} exited with code {} before its calls were captured", rank, end.code);
      break;
    case SandboxEnd::Why::kSignal:
      outcome.text =
          fmt::format("rank {} was killed by signal {} ({})", rank, end.code, strsignal(end.code));
      break;
    case SandboxEnd::Why::kMemory:
      outcome.text = fmt::format("rank {} exceeded its host memory limit", rank);
      break;
    case SandboxEnd::Why::kProcesses:
      outcome.text = fmt::format("rank {} exceeded its limit of threads and processes", rank);
      break;
    case SandboxEnd::Why::kFiles:
      outcome.text = fmt::format("rank {} exceeded its file limit", rank);
      break;
    case SandboxEnd::Why::kOutput:
      outcome.text = fmt::format("rank {} exceeded its output limit", rank);
      break;
    case SandboxEnd::Why::kCpu:
      outcome = {Verdict::kTimeout,
                 fmt::format("rank {} exceeded its CPU time limit on the host", rank), end.err};
      break;
    case SandboxEnd::Why::kIdle:
      return Internal(fmt::format("rank {} was idle for a day", rank));
    case SandboxEnd::Why::kKilled:
      return Internal(fmt::format("rank {} was killed by the judge too early", rank));
    case SandboxEnd::Why::kSandbox:
      return Internal(end.text);
  }
  return outcome;
}

Outcome Session::Told(const wire::JudgeNews& news) {
  using NewsKind = wire::JudgeNews::Kind;
  const std::string text =
      news.rank < 0 ? news.text : fmt::format("rank {}: {}", news.rank, news.text);
  switch (news.kind) {
    case NewsKind::kReady:
      return {};
    case NewsKind::kForbidden:
      return {Verdict::kForbiddenApi, text, ""};
    case NewsKind::kRefused:
      return {Verdict::kCrash, text, ""};
    case NewsKind::kFault:
      return {Verdict::kMemoryError, text, ""};
    case NewsKind::kDeadlock:
      return {Verdict::kDeadlock, text, ""};
    case NewsKind::kUnsupported:
      return {Verdict::kUnsupported, text, ""};
    case NewsKind::kTampered:
      return {Verdict::kTampering, text, ""};
    case NewsKind::kLost: {
      const auto rank = static_cast<std::size_t>(news.rank);
      if (news.rank < 0 || rank >= ranks_.size()) return Internal("the node lost an unknown rank");
      return RankLost(rank);
    }
  }
  return Internal("the node sent an unknown message");
}

Outcome Session::Capture() {
  for (;;) {
    Outcome outcome;
    const std::optional<wire::Frame> frame = Next(&outcome);
    if (!frame) return outcome;
    std::span<const std::byte> bytes = frame->payload;
    if (frame->op == wire::Op::kJudgePlan) {
      wire::ReplyHeader header;
      if (!wire::DecodeFrom(bytes, &header)) return Internal("the node's answer is malformed");
      if (header.status != 0)
        return Internal(
            fmt::format("the node refused the plan (status {}): {}", header.status, header.err));
    } else if (frame->op == wire::Op::kJudgeNews) {
      wire::JudgeNews news;
      if (!wire::DecodeFrom(bytes, &news)) return Internal("the node's message is malformed");
      delivered_ = news.kind == wire::JudgeNews::Kind::kReady;
      return Told(news);
    }
  }
}

Outcome Session::Run(const wire::JudgeRun& run, wire::JudgeRunReply* reply) {
  if (!wire::SendFrame(control_.get(), wire::kOpOf<wire::JudgeRun>, ++sequence_,
                       wire::EncodePayload(wire::RequestHeader{}, run)))
    return NodeEnded();
  delivered_ = ranks_.empty();
  for (;;) {
    Outcome outcome;
    const std::optional<wire::Frame> frame = Next(&outcome);
    if (!frame) return outcome;
    std::span<const std::byte> bytes = frame->payload;
    if (frame->op == wire::Op::kJudgeNews) {
      wire::JudgeNews news;
      if (!wire::DecodeFrom(bytes, &news)) return Internal("the node's message is malformed");
      if (news.kind != wire::JudgeNews::Kind::kReady) return Told(news);
      continue;
    }
    if (frame->op != wire::Op::kJudgeRun || frame->sequence != sequence_) continue;
    wire::ReplyHeader header;
    if (!wire::DecodeFrom(bytes, &header) || !wire::DecodeFrom(bytes, reply))
      return Internal("the node's answer is malformed");
    if (header.status != 0)
      return Internal(
          fmt::format("the node refused to run (status {}): {}", header.status, header.err));
    const std::string text =
        reply->rank < 0 ? reply->text : fmt::format("rank {}: {}", reply->rank, reply->text);
    using End = wire::JudgeRunReply::End;
    switch (reply->end) {
      case End::kDone:
        return {};
      case End::kDeadlock:
        return {Verdict::kDeadlock, text, reply->json};
      case End::kFault:
        return {OfFault(reply->status), text, ""};
      case End::kFuel:
        return {Verdict::kTimeout, text, ""};
      case End::kForbidden:
        return {Verdict::kForbiddenApi, text, ""};
      case End::kUnsupported:
        return {Verdict::kUnsupported, text, ""};
      case End::kLost: {
        const auto rank = static_cast<std::size_t>(reply->rank);
        if (reply->rank >= 0 && rank < ranks_.size()) return RankLost(rank);
        return {Verdict::kCrash, text, ""};
      }
    }
  }
}

}  // namespace allranks::judge
