// Who asks, what a message names, and how it is answered. desk.h has the theory.
#include "server/desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "server/call_args.h"
#include "server/link.h"
#include "server/trace.h"

namespace allranks::server {

using node::Hosts;

namespace {

Hosts::Options HostOptions(const CoreOptions& options) {
  Hosts::Options result;
  result.min_cost = kHostCall;
  result.patience_ms = options.patience_ms;
  return result;
}

}  // namespace

Desk::Desk(std::unique_ptr<node::Machine> machine, const CoreOptions& options, Hosts::Events events)
    : options_(options),
      machine_(std::move(machine)),
      checking_(options_.check ? machine_->checking() : nullptr),
      hosts_(HostOptions(options_), std::move(events)) {}

// --- who asks ----------------------------------------------------------------------------------

void Desk::RefusedImage(const std::string& why) {
  constexpr std::size_t kMost = 16;
  const bool known = std::ranges::find(refused_images_, why) != refused_images_.end();
  if (!known && refused_images_.size() < kMost) refused_images_.push_back(why);
}

Process& Desk::AddProcess() {
  Process& process = roster_.Add(hosts_.AddProcess());
  roster_.Add(hosts_.AddThread(process.rank));
  if (checking_ != nullptr && roster_.seen() > 1) checking_->SetSeveral();
  return process;
}

void Desk::SetCaller(node::SiteId site) {
  caller_ = site;
  checking_->SetCaller(site);
}

node::ProcessId Desk::AddToMachine(Process& process) {
  const std::int32_t rank = process.label >= 0 ? process.label : process.rank;
  process.machine = machine_->AddProcess(rank, process.host);
  roster_.NameMachine(*process.machine, rank);
  return *process.machine;
}

node::ProcessId Desk::MachineOf(Thread thread) {
  Process& process = ProcessOf(thread);
  if (!process.machine) {
    AddToMachine(process);
    Meet(thread);
  }
  return *process.machine;
}

std::optional<node::ProcessId> Desk::FindMachine(std::int32_t rank) const {
  const Process* process = roster_.Find(rank);
  return process == nullptr ? std::nullopt : process->machine;
}

// --- what it names -----------------------------------------------------------------------------

bool Desk::DeviceOk(Thread thread, int device) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  return device >= 0 && device < machine_->DeviceCount(MachineOf(thread));
}

std::optional<Desk::Stream> Desk::FindStream(Thread thread, const wire::StreamRef& ref) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (ref.stream == 0) {
    if (!DeviceOk(thread, ref.device)) return std::nullopt;
    return Stream{machine_->DefaultStream(MachineOf(thread), ref.device), ref.device};
  }
  const Process& process = ProcessOf(thread);
  const auto found = process.streams.find(ref.stream);
  if (found == process.streams.end()) return std::nullopt;
  return Stream{ref.stream, found->second};
}

node::Status Desk::ErrorOf(Thread thread, int device) {
  return machine_->StickyError(MachineOf(thread), device);
}

node::SiteId Desk::SiteOf(Thread thread, const std::vector<std::uint64_t>& stack) {
  if (stack.empty() || stack.size() > wire::kMaxStack || checking_ == nullptr || judged_ != nullptr)
    return 0;
  const Process* process = roster_.Find(thread.rank);
  return process == nullptr ? 0 : sites_.OfCall(process->pid, stack);
}

// --- answers -----------------------------------------------------------------------------------

void Desk::WhenDone(Thread thread, std::vector<node::OpId> ops, std::string what, Time later,
                    Time at, Hosts::Action action) {
  if (machine_->Done(ops)) return action(at);
  hosts_.Wait(thread, std::move(what), false);
  const std::uint64_t id = machine_->WhenDone(
      std::move(ops), [this, thread, later, action = std::move(action)](Time done) {
        if (ThreadRecord* record = roster_.Find(thread)) record->when_done = 0;
        hosts_.WakeAt(thread, done + later, action);
        machine_->Stop();
      });
  if (ThreadRecord* record = roster_.Find(thread); record != nullptr && hosts_.Has(thread))
    record->when_done = id;
}

void Desk::Send(Thread thread, node::Status status, const wire::Blob& body, int fd) {
  ThreadRecord* record = roster_.Find(thread);
  if (record == nullptr) return;
  Meet(thread);
  const std::optional<node::ProcessId> process = FindMachine(thread.rank);
  if (judged_ != nullptr) {
    judged_->Answered(thread.rank, status);
    if (process) machine_->ShowHost(*process);
  }
  Release(thread);
  record->asked = false;
  EndTraced(thread, *record);
  if (record->link != nullptr) {
    wire::ReplyHeader header;
    header.status = static_cast<std::int32_t>(status);
    header.busy = MayChange(thread.rank);
    if (checking_ != nullptr && judged_ == nullptr)
      header.watch = process && (machine_->Busy() || checking_->HostBehind(*process));
    header.clock = hosts_.now();
    if (process && wire::InfoOf(record->op).Has(wire::kFlushesText)) {
      const std::size_t room =
          wire::kMaxPayload - std::min<std::size_t>(wire::kMaxPayload, body.size() + 1024);
      node::DeviceText text = machine_->TakeText(*process, room);
      if (judged_ == nullptr) {
        header.out = std::move(text.out);
        header.err = std::move(text.err);
      }
    }
    wire::Blob payload;
    payload.reserve(16 + body.size());
    wire::EncodeTo(header, payload);
    payload.insert(payload.end(), body.begin(), body.end());
    record->link->Send(record->op, record->sequence, payload, fd);
  }
  polls_.ran_natively = true;
  hosts_.Resume(thread);
}

void Desk::EndTraced(Thread thread, ThreadRecord& record) {
  if (options_.trace == nullptr || !record.since) return;
  std::string name, args = std::move(record.args);
  if (record.site != 0 && *record.since < hosts_.now()) {
    const node::HostSite& site = sites_.Of(record.site);
    name = site.call;
    if (!site.frames.empty() && site.frames[0].line != 0)
      args += fmt::format("{}\"at\":{}", args.empty() ? "" : ",", Trace::Quoted(site.Place()));
  }
  if (name.empty()) name = HostFunctionOf(record.op);
  options_.trace->OnCall(thread, name, std::move(args), *record.since, hosts_.now());
  record.since.reset();
}

bool Desk::MayChange(std::int32_t rank) const {
  // Instrumented host code says itself what it looks at, and its steps have their own times; its
  // pages stay open.
  if (judged_ != nullptr) return machine_->Busy() && !judged_->host_window();
  if (machine_->Busy()) return true;
  const Process* process = roster_.Find(rank);
  return process != nullptr && process->pinned &&
         (process->shares_host_memory || hosts_.ThreadCount(rank) > 1);
}

void Desk::Release(Thread thread) {
  ThreadRecord& record = roster_.Of(thread);
  if (record.when_done != 0) machine_->CancelWhenDone(std::exchange(record.when_done, 0));
  if (record.watch != 0) machine_->Unwatch(std::exchange(record.watch, 0));
  record.in_wait_key = false;
  polls_.memory.erase(thread);
  if (!record.fds.empty()) {
    record.fds.clear();
    polls_.descriptors.erase(thread);
  }
}

// By which way processes talk (a pipe, shared memory, MPI) is not always visible here, but whoever
// hears of something makes its next call after the other's has been answered: so all calls count as
// such meetings, in the order in which they are handled. Judged ranks have no such ways; judged.cpp
// says when they meet.
void Desk::Meet(Thread thread) {
  if (checking_ == nullptr || judged_ != nullptr) return;
  if (const auto process = FindMachine(thread.rank)) checking_->HostMeets(*process);
}

}  // namespace allranks::server
