// Every message between a host thread (shim/) and the node (server/), as data.
//
// Theory of operation. Each host thread of a program has its own connection. It sends one request
// and waits for the one reply to it, so there is never more than one request of a connection under
// way. A frame (wire/frame.h) carries the operation's number, the protocol's version and a sequence
// number that the reply repeats. A request's payload is RequestHeader and then the struct of that
// operation; a reply's payload is ReplyHeader and then the request's `Reply` struct. The reply's
// struct is always there, with default values if status is not 0. A reply's frame has the op of its
// request.
//
// This folder does not know what a message means. Statuses are CUresult numbers; times are virtual
// picoseconds; devices are ordinals as the process sees them; a `stream` of 0 means the default
// stream of the `device` beside it. Any change of a struct or of Op's order is a new
// kProtocolVersion.
#pragma once

#include <string>

#include "wire/device_messages.h"
#include "wire/host_messages.h"
#include "wire/judge_messages.h"
#include "wire/memory_messages.h"
#include "wire/op.h"
#include "wire/share_messages.h"
#include "wire/work_messages.h"

namespace allranks::wire {

// One line per Visit, so that a struct and its description stand side by side.
// clang-format off

// --- the supervisor ----------------------------------------------------------------------------

// The program has ended: the node answers with its statistics and ends too.
struct FinishReply {
  std::string stats_json;
  template <class A> void Visit(A& a) { a(stats_json); }
};
struct Finish {
  using Reply = FinishReply;
  template <class A> void Visit(A& a) { a(); }
};
// Where every thread, stream and warp stands; the run goes on.
struct WhereReply {
  std::string text;
  template <class A> void Visit(A& a) { a(text); }
};
struct Where {
  using Reply = WhereReply;
  template <class A> void Visit(A& a) { a(); }
};
// Sent by the node, unasked; has no reply.
struct Deadlock {
  using Reply = Empty;
  std::string text, json;
  template <class A> void Visit(A& a) { a(text, json); }
};

// clang-format on
}  // namespace allranks::wire
