#include "server/error_calls.h"

#include <fmt/format.h>

#include "node/checking.h"

namespace allranks::server {

namespace {

constexpr std::size_t kMostErrors = 1'000;
// What every call of a context returns whose kernel has failed: NVLINK_UNCORRECTABLE,
// ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, ASSERT, and HARDWARE_STACK_ERROR to LAUNCH_FAILED.
bool Sticky(int error) {
  return error == 220 || error == 700 || error == 702 || error == 710 ||
         (error >= 714 && error <= 719);
}

constexpr std::size_t kMostText = 300;  // of what a program says

}  // namespace

// The runtime's functions are the driver's callers: what fails within one of them is reported by
// it, under its own name, or is no failure of it. Libraries ask for much that may be missing
// (NCCL's probes of the driver, UCX's of pointers) and pass on what their callers have to know.
bool ErrorCalls::IsOfProgram(const wire::ApiError& message) const {
  const bool of_runtime = message.name.starts_with("cuda");
  const HostSites::Caller caller = desk_.sites().CallerOf(desk_.caller());
  if (!of_runtime && (!caller.known || caller.runtime)) return false;
  return !caller.library;
}

void ErrorCalls::Handle(Thread thread, const wire::ApiError& message, Time at) {
  if (desk_.checking() == nullptr || !IsOfProgram(message)) {
    desk_.Reply<wire::ApiError>(thread);
    return;
  }
  const node::SiteId caller = desk_.caller();
  const Key key{thread, caller, message.error};
  // Only the runtime remembers a thread's last error.
  const bool asked = !message.name.starts_with("cuda");
  if (const auto known = known_.find(key); known != known_.end()) {
    Error& error = errors_[known->second];
    ++error.finding.count;
    error.seen = asked;
  } else if (errors_.size() < kMostErrors) {
    known_.emplace(key, errors_.size());
    node::FindingAccess access;
    access.what = "call";
    const Process& process = desk_.ProcessOf(thread);
    access.rank = process.label >= 0 ? process.label : thread.rank;
    access.alone = desk_.roster().seen() == 1;
    access.site = desk_.sites().Of(caller);
    access.time = at;
    if (!access.site.frames.empty()) {
      access.file = access.site.frames[0].file;
      access.line = access.site.frames[0].line;
    }
    const std::string call = access.site.call.empty() ? "a call of CUDA's" : access.site.call;
    node::Finding finding;
    finding.kind = node::Finding::Kind::kApiError;
    finding.text = fmt::format(
        "{}{} returns {} ({}): {}", call, message.arguments.substr(0, kMostText),
        message.name.substr(0, kMostText), message.error, message.text.substr(0, kMostText));
    finding.accesses.push_back(std::move(access));
    errors_.push_back({std::move(finding), thread, message.error, asked});
  }
  desk_.Reply<wire::ApiError>(thread);
}

void ErrorCalls::Handle(Thread thread, const wire::ApiErrorSeen&, Time) {
  for (Error& error : errors_)
    if (error.thread == thread) error.seen = true;
  desk_.Reply<wire::ApiErrorSeen>(thread);
}

std::vector<node::Finding> ErrorCalls::Findings(bool explained) const {
  std::vector<node::Finding> findings;
  for (const Error& error : errors_) {
    if (explained && Sticky(error.number)) continue;
    findings.push_back(error.finding);
    if (!error.seen) findings.back().missing = "the thread does not call cudaGetLastError after it";
  }
  return findings;
}

}  // namespace allranks::server
