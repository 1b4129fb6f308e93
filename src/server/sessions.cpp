// Connections as they come and go: whose they are by their first message, and what becomes of those
// that break the rules. Part of Core; see core.h.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/calls.h"
#include "server/core.h"
#include "server/judged.h"

namespace allranks::server {

void Core::Opened(Link* link, pid_t pid, int judged) {
  sessions_[link] = Session{pid, {}, false, judged};
}

void Core::Drop(Link* link) {
  auto found = sessions_.find(link);
  if (found == sessions_.end()) return;
  if (ThreadRecord* record = roster_.Find(found->second.thread)) record->link = nullptr;
  sessions_.erase(found);
  link->Close();
}

void Core::CloseLinks() {
  std::vector<Link*> links;
  for (const auto& [link, session] : sessions_) links.push_back(link);
  for (Link* link : links) Drop(link);
}

// What a peer may do wrong harms only itself: its own connection, and the process that it has
// proved to belong to.
void Core::Violation(Link* link, const std::string& why) {
  auto found = sessions_.find(link);
  if (found == sessions_.end()) return;
  const Session session = found->second;
  if (options_.log) {
    options_.log(session.thread.rank < 0
                     ? fmt::format("closed a connection of pid {}: {}", session.pid, why)
                     : fmt::format("disconnected rank {} (pid {}): {}", session.thread.rank,
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
  ThreadRecord* record = roster_.Find(thread);
  if (record == nullptr) return;
  record->link = nullptr;
  Process& process = desk_.ProcessOf(thread);
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
  std::string why;
  const std::optional<Thread> said = ThreadOf(session, *hello, &why);
  if (!said) return Violation(link, why);
  const Thread thread = *said;
  Process& process = desk_.ProcessOf(thread);
  if (hello->kind != wire::Hello::Kind::kThread && judged_ == nullptr) PlaceImage(process, *hello);
  ThreadRecord& record = desk_.RecordOf(thread);
  record.link = link;
  record.tid = hello->tid;
  record.asked = true;
  record.op = wire::Op::kHello;
  record.sequence = frame.sequence;
  session.thread = thread;
  session.said_hello = true;
  if (process.pid == 0 && judged_ == nullptr) {
    process.pid = session.pid;
    process.watched = options_.watch_process && options_.watch_process(process.pid);
    if (Process* parent = roster_.Find(process.parent))
      for (Child& child : parent->children)
        if (child.rank == process.rank) child.pid = process.pid;
  }
  if (!hosts_.Request(thread, 0, "hello", [this, thread, hello](Time at) {
        calls_->host().Handle(thread, *hello, at);
      }))
    Violation(link, "an unannounced thread");
}

std::optional<Core::Thread> Core::ThreadOf(const Session& session, const wire::Hello& hello,
                                           std::string* why) {
  if (judged_ != nullptr) {
    *why = "a process that is not the rank's own, or a second process";
    return JudgedThreadOf(session, hello);
  }
  if (hello.kind == wire::Hello::Kind::kRoot) {
    *why = "too many processes";
    if (static_cast<int>(process_count()) >= options_.limits.processes) return std::nullopt;
    // When it came is a matter of wall time, unless it is alone.
    if (!hosts_.Empty()) hosts_.LoseDeterminism("an unannounced process joined");
    return Thread{desk_.AddProcess().rank, 1};
  }
  Process* process = roster_.FindToken(hello.token);
  *why = "an unknown token";
  if (process == nullptr) return std::nullopt;
  const bool exec = hello.kind == wire::Hello::Kind::kExec;
  *why = "a token of another kind";
  if (exec != (hello.token == process->exec_token)) return std::nullopt;
  Thread thread;
  *why = "another process's token";
  if (exec) {
    if (process->pid != session.pid) return std::nullopt;
    thread = process->exec_thread;
    ReplaceImage(*process);  // unless the old connections have been seen to close already
    roster_.DropToken(process->exec_token);
    process->exec_token = 0;
  } else {
    const bool child = hello.kind == wire::Hello::Kind::kChild;
    thread = {process->rank, child ? 1 : static_cast<std::uint32_t>(hello.thread)};
    // The first thread of an announced process gives it its pid; all others must have the same.
    if (process->pid != 0 && process->pid != session.pid) return std::nullopt;
  }
  const ThreadRecord* record = roster_.Find(thread);
  *why = "an unannounced thread";
  if (record == nullptr || record->link != nullptr || record->asked) return std::nullopt;
  return thread;
}

std::optional<Core::Thread> Core::JudgedThreadOf(const Session& session, const wire::Hello& hello) {
  if (session.judged < 0) return std::nullopt;
  if (hello.kind == wire::Hello::Kind::kRoot) return judged_->Join(session.judged);
  const Process* process = roster_.FindToken(hello.token);
  if (hello.kind != wire::Hello::Kind::kThread || process == nullptr ||
      process->rank != session.judged)
    return std::nullopt;
  const Thread thread{session.judged, static_cast<std::uint32_t>(hello.thread)};
  const ThreadRecord* record = roster_.Find(thread);
  const bool announced = record != nullptr && record->link == nullptr && !record->asked &&
                         hello.thread == thread.number;
  return announced ? std::optional(thread) : std::nullopt;
}

}  // namespace allranks::server
