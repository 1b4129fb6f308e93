// Chains of flags that lead through a host: a thread stores a flag in memory that hosts see and the
// host makes a copy or accesses the data, or the host stores the flag and a thread polls it. The
// host's own side is not seen instruction by instruction; what the checker knows is what the host
// knew (checker.h). remedy.cpp has the chains between threads.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "node/check/checker.h"
#include "node/check/remedy.h"

namespace allranks::node::check {
namespace {

constexpr Agent kHost = 0;  // nobody's block: whatever a host is told needs system scope

}  // namespace

bool RemedySearch::TellToHost(Finding* finding) {
  const Trail* trail = IsThread(e_) ? TrailOf(e_.agent) : nullptr;
  if (trail == nullptr) return false;
  const auto& events = trail->events();
  // The first flag after the access: later ones announce other data.
  const auto write = std::find_if(events.begin(), events.end(), [&](const Event& event) {
    return event.kind == Event::Kind::kWrite && event.host && !Early(event, e_.agent);
  });
  if (write == events.end()) return false;
  Chain chain;
  chain.links = {{e_.agent, &*write, kHost, nullptr}};
  Release(e_.agent, *write, kHost, false, 0, &chain);
  if (write->scope < Scope::kSys)
    chain.faults.push_back({Fault::Fix::kScope, e_.agent, write->pc, Scope::kSys, write->scope});
  if (chain.faults.empty()) return false;
  best_ = std::move(chain);
  const Code& code = CodeOf(e_.agent);
  finding->missing = fmt::format(
      "the flag that the kernel stores for the host ({}, {}) does not announce the access before "
      "it",
      PlaceOf(code, write->pc), code.forms[write->pc]);
  Tell(finding);
  return true;
}

bool RemedySearch::TellFromHost(Finding* finding) {
  const Trail* trail = IsThread(l_) ? TrailOf(l_.agent) : nullptr;
  if (trail == nullptr) return false;
  const auto& events = trail->events();
  const auto read = std::find_if(events.rbegin(), events.rend(), [&](const Event& event) {
    return event.kind == Event::Kind::kRead && event.host && Known(kHost, nullptr, event.others);
  });
  if (read == events.rend()) return false;
  Chain chain;
  chain.links = {{kHost, nullptr, l_.agent, &*read}};
  const bool copy = l_.warp >= kFirstCopyWarp;
  Acquire(l_.agent, *read, Scope::kSys, copy ? l_.warp % 64 : l_.warp,
          copy ? ~0u : 1u << later_lane_, l_.pc, ~std::uint64_t{0}, &chain);
  if (chain.faults.empty()) return false;
  best_ = std::move(chain);
  const Code& code = CodeOf(l_.agent);
  finding->missing = fmt::format(
      "the host has waited before it stored the flag, but the kernel's load of the flag ({}, {}) "
      "does not order the access after it",
      PlaceOf(code, read->pc), code.forms[read->pc]);
  Tell(finding);
  return true;
}

}  // namespace allranks::node::check
