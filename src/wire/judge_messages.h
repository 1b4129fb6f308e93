// Messages of a judged run: what the judge asks of the node over its control connection, and what
// the driver inside a rank and the node say to each other. Part of wire/messages.h.
//
// The way of a judged run. The judge sends one JudgePlan: ranks, rules, cases. Each rank's driver
// asks JudgeNext again and again and does what the answer says: call `setup`, capture a case, run a
// case, end. When every rank has delivered every case the node says JudgeNews{kReady} on the
// control connection. In a graph window the judge then kills the ranks; the node keeps what they
// made. Each JudgeRun is one window: calls of one case by all ranks, on inputs that the judge has
// put into shared memory just before. Two sealed memory files are given to the node at its start:
// the judge writes inputs into the one, which the node cannot write; the node writes snapshots into
// the other.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "wire/host_messages.h"
#include "wire/op.h"

namespace allranks::wire {

// One line per Visit, so that a struct and its description stand side by side.
// clang-format off

// --- judge to node -----------------------------------------------------------------------------

enum class JudgeWindow : std::uint8_t { kGraph, kStream, kHost, kQuery, kLast_ = kQuery };

// Memory of one case, the same size on every rank; zero until a call opens.
struct JudgeTensor {
  std::uint64_t bytes = 0;
  bool peers = false;      // every rank's can be addressed by every rank
  bool multicast = false;  // and all of them by one multicast address
  bool host = false;       // pinned host memory instead of the rank's device
  bool device = true;      // of host memory: devices may use it
  template <class A> void Visit(A& a) { a(bytes, peers, multicast, host, device); }
};
// Where in the bytes of Args the node writes an address.
struct JudgeField {
  enum class Pointer : std::uint8_t { kOwn, kPeer, kMulticast, kLast_ = kMulticast };
  Pointer pointer = Pointer::kOwn;
  std::uint32_t offset = 0;
  std::uint32_t tensor = 0;
  std::uint32_t peer = 0;  // kPeer: whose
  template <class A> void Visit(A& a) { a(pointer, offset, tensor, peer); }
};
struct JudgeCase {
  Blob args;  // bytes of Args; the i32 at offset 0 is the rank, set by the node
  std::vector<JudgeField> fields;
  std::vector<JudgeTensor> tensors;
  template <class A> void Visit(A& a) { a(args, fields, tensors); }
};
// What a candidate may do.
struct JudgeRules {
  bool setup = false;           // the candidate has a `setup`, with calls on memory and modules
  bool kernels = true;          // on its own device, also in `setup`
  bool copies = false;          // copies between devices and memsets
  bool values = false;          // stream memory operations
  bool multicast = false;       // multicast objects of its own
  bool library = false;         // a library's host code: pinned memory, sockets, memory in the capture
  std::uint32_t max_ctas = 0;   // of all its kernels, at the same time; 0: no limit
  template <class A> void Visit(A& a) { a(setup, kernels, copies, values, multicast, library, max_ctas); }
};
// The first message of a judged run; its reply says whether memory suffices.
struct JudgePlan {
  using Reply = Empty;
  JudgeWindow window = JudgeWindow::kGraph;
  std::uint32_t world = 1;
  std::uint32_t host_threads = 0;  // host window: threads that call `host`
  JudgeRules rules;
  // SHA-256 of the one module that ranks may load: what the compiler has made of the candidate's
  // source. Empty: any.
  Blob module_hash;
  std::vector<JudgeCase> cases;
  template <class A> void Visit(A& a) {
    a(window, world, host_threads, rules, module_hash, cases);
  }
};

// Bytes of a tensor in one of the shared memory files.
struct JudgeBytes {
  std::uint32_t tensor = 0;
  std::uint64_t place = 0, bytes = 0;
  template <class A> void Visit(A& a) { a(tensor, place, bytes); }
};
struct JudgePoison {
  std::uint32_t tensor = 0;
  std::uint32_t word = 0;  // repeated over the tensor
  template <class A> void Visit(A& a) { a(tensor, word); }
};
// One call of one rank: `open` waits `delay`, writes `draw`, poisons; `close` compares `draw` with
// what is there and writes `keep`. Both are stream-ordered, take no time and touch no other rank.
struct JudgeCall {
  std::int64_t delay_ps = 0;
  std::vector<JudgeBytes> draw;
  std::vector<JudgePoison> poison;
  std::vector<JudgeBytes> keep;
  template <class A> void Visit(A& a) { a(delay_ps, draw, poison, keep); }
};
struct JudgeLink {
  std::string name, kind, from, to;      // one direction
  std::vector<std::uint64_t> bytes;      // payload by mover, in the order of node::Mover
  std::uint64_t wire_bytes = 0;
  template <class A> void Visit(A& a) { a(name, kind, from, to, bytes, wire_bytes); }
};
// A node::FindingAccess and a node::Finding (node/finding.h).
struct JudgeAccess {
  std::string what, form;
  std::int32_t rank = -1, device = -1;
  std::string kernel;
  std::array<std::uint32_t, 3> block{};
  std::uint32_t thread = 0;
  std::string file;
  std::int32_t line = 0;
  std::string inlined_at, object;
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  bool write = false;
  std::int64_t time_ps = 0;
  template <class A> void Visit(A& a) {
    a(what, form, rank, device, kernel, block, thread, file, line, inlined_at, object, offset,
      bytes, write, time_ps);
  }
};
struct JudgePlace {
  std::string file;
  std::int32_t line = 0, column = 0;
  std::string function;
  template <class A> void Visit(A& a) { a(file, line, column, function); }
};
struct JudgeEdit {
  std::uint8_t action = 0, by = 0;
  std::vector<JudgePlace> at;
  std::string text, from, form;
  std::vector<JudgePlace> to;
  template <class A> void Visit(A& a) { a(action, by, at, text, from, form, to); }
};
struct JudgePair {
  std::string later, earlier;
  template <class A> void Visit(A& a) { a(later, earlier); }
};
struct JudgeFinding {
  std::uint8_t kind = 0;
  std::string text, missing, advice;
  std::vector<JudgeAccess> accesses;
  std::uint64_t count = 1, schedule = 0;
  std::vector<JudgeEdit> edits;
  std::uint64_t pairs = 1;
  std::vector<JudgePair> also;
  template <class A> void Visit(A& a) {
    a(kind, text, missing, advice, accesses, count, schedule, edits, pairs, also);
  }
};
struct JudgeRunReply {
  enum class End : std::uint8_t {
    kDone,
    kDeadlock,
    kFault,      // a kernel or copy failed: `text`
    kFuel,       // a kernel used up its instructions
    kForbidden,  // against the rules: `text`
    kLost,       // a rank ended in the window
    kUnsupported,
    kLast_ = kUnsupported,
  };
  End end = End::kDone;
  std::int32_t rank = -1;               // whose fault it is, if that can be said
  std::int32_t status = 0;              // CUresult of a fault
  std::string text, json;               // for people; waiters of a deadlock as JSON
  std::vector<std::int64_t> opened_ps;  // call by call, in each rank by rank; -1: not reached
  std::vector<std::int64_t> closed_ps;
  std::vector<std::uint8_t> changed;    // 1: an input was not what `open` had written
  std::vector<JudgeLink> links;         // what links carried in this window
  std::vector<std::uint64_t> moved;     // payload by mover, once however many links it passed
  std::uint64_t thread_instructions = 0;
  Blob answer;                          // query window: rank 0's
  std::vector<JudgeFinding> findings;   // of the window, if it was checked
  std::vector<std::uint64_t> places;    // node::PlaceCounts, if they were asked for
  std::uint64_t cpu_us = 0;             // CPU time of the node for this window
  template <class A> void Visit(A& a) {
    a(end, rank, status, text, json, opened_ps, closed_ps, changed, links, moved,
      thread_instructions, answer, findings, places, cpu_us);
  }
};
struct JudgeRun {
  using Reply = JudgeRunReply;
  std::uint32_t case_index = 0;
  bool drain = false;             // a test mode: every call begins when all ranks are at rest
  std::uint64_t fuel = 0;         // thread-instructions of all kernels together; 0: no limit
  bool check = false;             // look for races and the like; the node must be able to
  // At most one of these, and only with `check`.
  std::uint64_t schedule = 0;     // node::Schedule::seed
  std::uint64_t directed = 0;     // the number of a directed schedule (node::ScheduleOf)
  bool places = false;            // schedule 0, and places are counted
  // When the window begins, from a grid of the node's on. Drawn, so that no time tells of which
  // window it is a part.
  std::int64_t begin_ps = 0;
  // What disturbs a window (delays, late wakes, schedule) begins so long after it; until then it goes
  // exactly as if nothing did.
  std::int64_t disturbed_from_ps = 0;
  bool brief = false;             // node::Schedule
  std::uint64_t sample = 0;       // node::Schedule; with `check`
  bool trace = false;             // graph window: write the node's trace at its end
  bool pass_over = false;         // instructions that the node lacks
  // Graph window: calls that are asked for one by one. The node stays as this run leaves it; the run
  // goes on from where the one before has stayed.
  bool stays = false, goes_on = false;
  std::uint32_t calls = 0;
  std::vector<JudgeCall> by_rank; // calls x world: call by call, in each rank by rank
  template <class A> void Visit(A& a) {
    a(case_index, drain, fuel, check, schedule, directed, places, begin_ps, disturbed_from_ps, brief,
      sample, trace, pass_over, stays, goes_on, calls, by_rank);
  }
};

// Sent by the node, unasked; has no reply.
struct JudgeNews {
  using Reply = Empty;
  enum class Kind : std::uint8_t {
    kReady,      // every rank has delivered every case
    kForbidden,  // a rank has done what the rules do not allow
    kRefused,    // a CUDA call of setup or capture failed, or a case could not be captured
    kFault,      // a kernel of setup failed
    kDeadlock,   // everybody waits
    kLost,       // a rank's connection ended before it had delivered
    kUnsupported,  // the node lacks an instruction or a function
    kTampered,   // a message that no driver of ours would send
    kLast_ = kTampered,
  };
  Kind kind = Kind::kReady;
  std::int32_t rank = -1;
  std::string text;
  template <class A> void Visit(A& a) { a(kind, rank, text); }
};

// --- driver and node ---------------------------------------------------------------------------

struct JudgeNextReply {
  enum class Do : std::uint8_t {
    kSetup,    // call setup(boot, args) of the case
    kCapture,  // capture the calls of the case, instantiate, deliver the executable graph
    kRun,      // stream and host window: JudgeOpen, calls, JudgeClose, `calls` times
    kAnswer,   // query window: call answer(args), deliver its bytes
    kEnd,
    kLast_ = kEnd,
  };
  Do what = Do::kEnd;
  std::uint32_t case_index = 0;
  std::uint32_t rank = 0, world = 1;
  std::uint32_t calls = 0;
  std::uint32_t host_threads = 0;
  Blob args;
  // Host memory of the case that the rank has not mapped yet: each is to be asked for by
  // AllocPinned of that size, in this order.
  std::vector<std::uint64_t> pinned;
  template <class A> void Visit(A& a) {
    a(what, case_index, rank, world, calls, host_threads, args, pinned);
  }
};
struct JudgeNext {
  using Reply = JudgeNextReply;
  std::int32_t status = 0;   // cudaError_t of what was asked before
  std::uint64_t graph = 0;   // the node's number of the executable graph, after kCapture
  std::string text;          // what failed
  Blob answer;               // after kAnswer
  template <class A> void Visit(A& a) { a(status, graph, text, answer); }
};
// The beginning and end of a call in the rank's stream.
struct JudgeOpen {
  using Reply = Empty;
  std::uint64_t stream = 0;
  std::uint32_t call = 0;
  template <class A> void Visit(A& a) { a(stream, call); }
};
struct JudgeClose {
  using Reply = Empty;
  std::uint64_t stream = 0;
  std::uint32_t call = 0;
  template <class A> void Visit(A& a) { a(stream, call); }
};
// Boot::AllGather: each rank's bytes (of equal size, at most 4 KiB) to all ranks, in their order.
// No bytes: a barrier. Only in setup.
struct JudgeGatherReply {
  Blob bytes;
  template <class A> void Visit(A& a) { a(bytes); }
};
struct JudgeGather {
  using Reply = JudgeGatherReply;
  Blob bytes;
  template <class A> void Visit(A& a) { a(bytes); }
};
// Instrumented host code is about to touch memory that devices see: its time so far is charged, and
// what it then reads has arrived.
struct JudgeHostStep {
  using Reply = Empty;
  std::int64_t cost_ps = 0;
  std::uint64_t address = 0, size = 0;
  bool writes = false;
  std::uint8_t order = 0;    // node::Checking::HostOrder; with no bytes: of a fence, 0: none
  // It has read nothing but these values for long: the reply may wait until one of them has
  // changed, but not longer than `timeout_ps`.
  std::vector<HostPoll::Watch> watches;
  std::int64_t timeout_ps = 0;
  template <class A> void Visit(A& a) { a(cost_ps, address, size, writes, order, watches, timeout_ps); }
};

// clang-format on
}  // namespace allranks::wire
