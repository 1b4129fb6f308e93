// Connections as they come and go: whose they are by their first message, and what becomes of those
// that break the rules. Part of Core; see core.h.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>

#include "server/core.h"

namespace allranks::server {

void Core::Opened(Link* link, pid_t pid, int judged) {
  sessions_[link] = Session{pid, {}, false, judged};
}

void Core::Drop(Link* link) {
  auto found = sessions_.find(link);
  if (found == sessions_.end()) return;
  if (auto record = threads_.find(found->second.thread); record != threads_.end())
    record->second.link = nullptr;
  sessions_.erase(found);
  link->Close();
}

// What a peer may do wrong harms only itself: its own connection, and the process that it has
// proved to belong to.
void Core::Violation(Link* link, const std::string& why) {
  auto found = sessions_.find(link);
  if (found == sessions_.end()) return;
  const Session session = found->second;
  if (options_.log) {
    options_.log(session.thread.rank < 0
                     ? fmt::format("a connection of pid {} was closed: {}", session.pid, why)
                     : fmt::format("rank {} (pid {}) was dropped: {}", session.thread.rank,
                                   session.pid, why));
  }
  Drop(link);
  if (session.judged >= 0) judged_->Violated(session.judged, why);
  if (session.thread.rank >= 0) hosts_.EndProcess(session.thread.rank);
}

void Core::Closed(Link* link) {
  auto found = sessions_.find(link);
  if (found == sessions_.end()) return;
  const Thread thread = found->second.thread;
  sessions_.erase(found);
  auto record = threads_.find(thread);
  if (record == threads_.end()) return;
  record->second.link = nullptr;
  Process& process = processes_.at(thread.rank);
  if (process.exec_token != 0 && process.exec_thread == thread) {
    ReplaceImage(process);
  } else if (process.watched) {
    // The kernel closes a process's files one after the other: somebody may still read as open the
    // pipe that this one's end is about to close.
    hosts_.Closing(thread);
  } else {
    hosts_.Gone(thread);
  }
}

void Core::AcceptHello(Link* link, Session& session, wire::Frame& frame) {
  std::span<const std::byte> bytes = frame.payload;
  wire::RequestHeader header;
  auto hello = std::make_shared<wire::Hello>();
  if (!wire::DecodeFrom(bytes, &header) || !wire::DecodeFrom(bytes, hello.get()) || !bytes.empty())
    return Violation(link, "a malformed hello");
  if (hello->protocol != wire::kProtocolVersion)
    return Violation(link, fmt::format("protocol {}", hello->protocol));
  Thread thread;
  if (judged_ != nullptr) {
    const auto joined = JoinJudged(session, *hello);
    if (!joined) return Violation(link, "a process that is not the rank's own, or a second one");
    thread = *joined;
  } else if (hello->kind == wire::Hello::Kind::kRoot) {
    if (static_cast<int>(processes_.size()) >= options_.limits.processes)
      return Violation(link, "too many processes");
    // When it came is a matter of wall time, unless it is alone.
    if (!hosts_.Empty()) hosts_.LoseDeterminism("a process joined that no other had announced");
    const std::int32_t rank = hosts_.AddProcess();
    Process& process = processes_[rank];
    process.rank = rank;
    process.token = NewToken();
    tokens_[process.token] = rank;
    ++processes_seen_;
    thread = hosts_.AddThread(rank);
    threads_[thread];
  } else {
    auto token = tokens_.find(hello->token);
    if (token == tokens_.end()) return Violation(link, "an unknown token");
    Process& process = processes_.at(token->second);
    const bool exec = hello->kind == wire::Hello::Kind::kExec;
    if (exec != (hello->token == process.exec_token))
      return Violation(link, "a token of another kind");
    if (exec) {
      if (process.pid != session.pid) return Violation(link, "another process's token");
      thread = process.exec_thread;
      ReplaceImage(process);  // unless the old connections have been seen to close already
      tokens_.erase(process.exec_token);
      process.exec_token = 0;
    } else {
      const bool child = hello->kind == wire::Hello::Kind::kChild;
      thread = {process.rank, child ? 1 : static_cast<std::uint32_t>(hello->thread)};
      // The first thread of an announced process gives it its pid; all others must have the same.
      if (process.pid != 0 && process.pid != session.pid)
        return Violation(link, "another process's token");
    }
    auto record = threads_.find(thread);
    if (record == threads_.end() || record->second.link != nullptr || record->second.asked)
      return Violation(link, "a thread that nobody announced");
  }
  if (hello->kind != wire::Hello::Kind::kThread && judged_ == nullptr)
    PlaceImage(processes_.at(thread.rank), *hello);
  ThreadRecord& record = threads_.at(thread);
  record.link = link;
  record.tid = hello->tid;
  record.asked = true;
  record.op = wire::Op::kHello;
  record.sequence = frame.sequence;
  session.thread = thread;
  session.said_hello = true;
  Process& process = processes_.at(thread.rank);
  if (process.pid == 0 && judged_ == nullptr) {
    process.pid = session.pid;
    process.watched = options_.watch_process && options_.watch_process(process.pid);
    if (auto parent = processes_.find(process.parent); parent != processes_.end())
      for (Child& child : parent->second.children)
        if (child.rank == process.rank) child.pid = process.pid;
  }
  if (!hosts_.Request(thread, 0, "hello",
                      [this, thread, hello](Time at) { Handle(thread, *hello, at); }))
    Violation(link, "a thread that nobody announced");
}

std::optional<Core::Thread> Core::JoinJudged(const Session& session, const wire::Hello& hello) {
  if (session.judged < 0) return std::nullopt;
  if (hello.kind == wire::Hello::Kind::kRoot) return judged_->Join(session.judged);
  const auto token = tokens_.find(hello.token);
  if (hello.kind != wire::Hello::Kind::kThread || token == tokens_.end() ||
      token->second != session.judged)
    return std::nullopt;
  const Thread thread{session.judged, static_cast<std::uint32_t>(hello.thread)};
  const auto record = threads_.find(thread);
  const bool announced = record != threads_.end() && record->second.link == nullptr &&
                         !record->second.asked && hello.thread == thread.number;
  return announced ? std::optional(thread) : std::nullopt;
}

}  // namespace allranks::server
