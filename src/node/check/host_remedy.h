// Remedies that the host has to carry out: the two accesses belong to operations of streams, to
// processes or to host code, and what is missing is an event, a wait of the host, or an edge of a
// graph.
//
// An edit names the call before or behind which `text` belongs (`at`, innermost frame first) and
// the call whose operation it waits for (`to`). In `text` stand for what only the source can tell:
//   $at.stream, $to.stream   the stream that is given to that call
//   $at.node, $to.node       the graph node that it makes, $to.graph the graph
//   $at.0, $at.1, ...        its arguments
// tools/remedies puts these in; a person reads them from the call.
#pragma once

#include "node/finding.h"

namespace allranks::node::check {

struct LaunchInfo;

// Two operations of streams, or of graphs: `before` was made first, or has accessed first.
void OrderOperations(const LaunchInfo& before, const LaunchInfo& after, Finding* finding);

// Host code and an operation that is still under way.
void OrderHost(const FindingAccess& host, const FindingAccess& operation, Finding* finding);

// A flag tells of the operation too early: `flag` is the host's store or the stream's write of it.
void OrderFlag(const FindingAccess& operation, const HostSite& flag, Finding* finding);

// A memset or copy of the stream writes a word that kernels use as a flag meanwhile.
void WriteFlagByStream(const FindingAccess& operation, Finding* finding);

// A memset clears what kernels of another process or device use meanwhile; `counts`: they add to
// it. False: it is not so, or places are not known. Hoisted, it stands in a loop of its own in
// front of the one that launches the kernels, between waits for all devices.
bool ResetBeforeUse(const FindingAccess& memset, const FindingAccess& kernel, bool counts,
                    Finding* finding);

// Memory is freed while a kernel may still use it. `kernel` has the launch's site; `waits`: it
// waits for flags. An edit that moves the free belongs behind the first statement after the launch
// at which the host waits for it; where there is none, `text` stands between the two.
void OrderFree(const FindingAccess& kernel, bool same_stream, bool waits, Finding* finding);

// A kernel on device `user` may not use memory of `owner`, as its process numbers them. `pool`: of
// a pool, which grants the access.
void GrantAccess(const FindingAccess& kernel, int user, int owner, bool pool, Finding* finding);

}  // namespace allranks::node::check
