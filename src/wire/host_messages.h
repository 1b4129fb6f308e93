// Messages on host threads and processes and what they wait for; part of wire/messages.h.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "wire/op.h"

namespace allranks::wire {

// One line per Visit, so that a struct and its description stand side by side.
// clang-format off

// --- threads and processes ---------------------------------------------------------------------

// The first message of a connection.
struct HelloReply {
  std::uint64_t token = 0;             // of the process: whoever knows it can join
  std::uint64_t thread = 0;            // number within the process; the first is 1
  std::int32_t rank = 0;               // of the process, in order of creation
  std::int32_t host = 0, hosts = 1;    // the simulated host it is on, of so many
  bool sockets = false;                // the node wants the messages below "the network"
  std::int64_t realtime_base_ns = 0;   // CLOCK_REALTIME when the thread's clock was 0
  std::int64_t monotonic_base_ns = 0;  // the same for CLOCK_MONOTONIC
  bool stacks = false;                 // RequestHeader::stack is wanted of what makes work or memory
  bool call_stacks = false;            // the same of all calls of CUDA that take time
  template <class A> void Visit(A& a) {
    a(token, thread, rank, host, hosts, sockets, realtime_base_ns, monotonic_base_ns, stacks,
      call_stacks);
  }
};
struct Hello {
  using Reply = HelloReply;
  enum class Kind : std::uint8_t {
    kRoot,     // a process nobody announced; `token` is 0
    kThread,   // `token` of its process, `thread` from NewThread
    kChild,    // first thread of a process announced by NewProcess; `token` from there
    kExec,     // first thread of the new image of a process that sent Exec; `token` from there
    kLast_ = kExec,
  };
  std::uint32_t protocol = kProtocolVersion;
  Kind kind = Kind::kRoot;
  std::int32_t tid = 0;  // the system's number of the thread
  std::uint64_t token = 0;
  std::uint64_t thread = 0;
  // What the environment of a new image says; a thread says nothing of this.
  std::int32_t rank = -1;  // its rank in the launcher's counting; -1: none
  std::int32_t host = -1;  // the simulated host that it was told to be on; -1: none
  bool placed = false;     // no host was named, but the launcher chose one: that of the parent
  template <class A> void Visit(A& a) { a(protocol, kind, tid, token, thread, rank, host, placed); }
};

// Before a thread is created: from here on the node waits for its Hello. It inherits the clock.
struct NewThreadReply {
  std::uint64_t thread = 0;
  template <class A> void Visit(A& a) { a(thread); }
};
struct NewThread {
  using Reply = NewThreadReply;
  template <class A> void Visit(A& a) { a(); }
};

// 0: the sender ends; its connection is closed next. Else: that announced thread could not be
// created.
struct ThreadExit {
  using Reply = Empty;
  std::uint64_t thread = 0;
  template <class A> void Visit(A& a) { a(thread); }
};

// Reply when that thread of the process has ended (at once if it has, or never was).
struct WaitThread {
  using Reply = Empty;
  std::uint64_t thread = 0;
  template <class A> void Visit(A& a) { a(thread); }
};

// Before fork or spawn: `token` is for the child's Hello (kChild). The child inherits the clock.
struct NewProcessReply {
  std::uint64_t token = 0;
  template <class A> void Visit(A& a) { a(token); }
};
struct NewProcess {
  using Reply = NewProcessReply;
  template <class A> void Visit(A& a) { a(); }
};

// After it, by the parent: the child's pid, or -1 if it could not be created.
struct ProcessStarted {
  using Reply = Empty;
  std::uint64_t token = 0;
  std::int32_t pid = 0;
  template <class A> void Visit(A& a) { a(token, pid); }
};

// Before execve: the process's connections will be closed, but it goes on and says Hello (kExec)
// with the token of the reply. `failed`: execve returned after all.
struct ExecReply {
  std::uint64_t token = 0;
  template <class A> void Visit(A& a) { a(token); }
};
struct Exec {
  using Reply = ExecReply;
  bool failed = false;
  template <class A> void Visit(A& a) { a(failed); }
};

// Reply when that child (or any, with pid -1) has ended and can be reaped natively: its pid. With
// no_hang the reply comes at once, pid 0 if none has ended. A pid that the node does not know: 500.
// A child that was named in a reply to pid -1 counts as reaped and is not named again.
struct WaitProcessReply {
  std::int32_t pid = 0;
  template <class A> void Visit(A& a) { a(pid); }
};
struct WaitProcess {
  using Reply = WaitProcessReply;
  std::int32_t pid = -1;
  bool no_hang = false;
  template <class A> void Visit(A& a) { a(pid, no_hang); }
};

// --- waits -------------------------------------------------------------------------------------

// The frame carries one descriptor for each entry of `events` (poll's bits). Reply when one is
// ready, or `timeout_ps` have passed (< 0: never).
struct WaitFdReply {
  bool ready = false;
  template <class A> void Visit(A& a) { a(ready); }
};
struct WaitFd {
  using Reply = WaitFdReply;
  std::vector<std::int16_t> events;
  std::int64_t timeout_ps = -1;
  template <class A> void Visit(A& a) { a(events, timeout_ps); }
};

struct Sleep {
  using Reply = Empty;
  std::int64_t ps = 0;
  template <class A> void Visit(A& a) { a(ps); }
};

// Lets others go first; costs what a call costs.
struct Yield {
  using Reply = Empty;
  template <class A> void Visit(A& a) { a(); }
};

// A place in memory on which threads wait. Private: `where` is an address and counts within the
// process. Shared: (`object`, `where`) is (device and inode, offset) of the mapping, as in the
// kernel's futexes.
struct Key {
  bool shared = false;
  std::uint64_t object = 0;
  std::uint64_t where = 0;
  template <class A> void Visit(A& a) { a(shared, object, where); }
};

// Reply when `count` threads wait at `key`; `last` is true for exactly one of them.
struct BarrierWaitReply {
  bool last = false;
  template <class A> void Visit(A& a) { a(last); }
};
struct BarrierWait {
  using Reply = BarrierWaitReply;
  Key key;
  std::uint32_t count = 0;
  template <class A> void Visit(A& a) { a(key, count); }
};

// The same by name, among the processes of the node.
struct BootstrapBarrier {
  using Reply = BarrierWaitReply;
  std::string name;
  std::uint32_t count = 0;
  template <class A> void Visit(A& a) { a(name, count); }
};

// Registers the thread as waiting at `key`; replied at once. The thread then looks at its condition
// and sends WaitKey, which returns when a WakeKey has chosen it since registration (perhaps it has
// already), or UnwatchKey, which withdraws the registration and says whether a wake was used up by
// it.
struct WatchKey {
  using Reply = Empty;
  Key key;
  template <class A> void Visit(A& a) { a(key); }
};
struct WaitKeyReply {
  bool woken = false;  // false: timeout (the registration is withdrawn), or UnwatchKey came first
  template <class A> void Visit(A& a) { a(woken); }
};
struct UnwatchKey {
  using Reply = WaitKeyReply;
  Key key;
  template <class A> void Visit(A& a) { a(key); }
};
struct WaitKey {
  using Reply = WaitKeyReply;
  Key key;
  std::int64_t timeout_ps = -1;
  template <class A> void Visit(A& a) { a(key, timeout_ps); }
};
// Wakes up to `count` registered threads, the longest waiting first.
struct WakeKeyReply {
  std::uint32_t woken = 0;
  template <class A> void Visit(A& a) { a(woken); }
};
struct WakeKey {
  using Reply = WakeKeyReply;
  Key key;
  std::uint32_t count = 1;
  template <class A> void Visit(A& a) { a(key, count); }
};

// The thread is in a loop whose only way out, as far as the shim can see, is that one of these bytes
// of pinned memory changes, or, if `timeout_ps` >= 0, that it has looked often enough: then the
// reply comes after that time at the latest. Unless `changed`, the loop is to look again, and with
// `doubt` to run freely for a while: otherwise a deadlock is reported.
struct HostPollReply {
  bool changed = false;
  bool doubt = false;
  template <class A> void Visit(A& a) { a(changed, doubt); }
};
struct HostPoll {
  using Reply = HostPollReply;
  struct Watch {
    std::uint64_t address = 0;
    std::uint32_t size = 0;  // 1, 2, 4 or 8
    std::uint64_t seen = 0;
    template <class A> void Visit(A& a) { a(address, size, seen); }
  };
  std::vector<Watch> watches;
  std::int64_t timeout_ps = -1;
  template <class A> void Visit(A& a) { a(watches, timeout_ps); }
};

// --- the network -------------------------------------------------------------------------------
// Bytes go natively; simulated is when they arrive. Of connections, only where there are several
// simulated hosts.

// One end of a stream of bytes over IP; an IPv4 address in IPv6's form.
struct Endpoint {
  std::array<std::uint8_t, 16> address{};
  std::uint16_t port = 0;
  template <class A> void Visit(A& a) { a(address, port); }
  auto operator<=>(const Endpoint&) const = default;
};
// The sender's host has connected or accepted. Both ends say so, in any order, perhaps repeatedly.
struct NetworkOpen {
  using Reply = Empty;
  Endpoint mine, theirs;
  std::uint64_t socket = 0;  // another one on the same ends is another connection
  template <class A> void Visit(A& a) { a(mine, theirs, socket); }
};
// So many bytes have gone into the connection.
struct NetworkSend {
  using Reply = Empty;
  Endpoint mine, theirs;
  std::uint64_t bytes = 0;
  template <class A> void Visit(A& a) { a(mine, theirs, bytes); }
};
// So many bytes have come out of it: reply when they have arrived in virtual time.
struct NetworkReceive {
  using Reply = Empty;
  Endpoint mine, theirs;
  std::uint64_t bytes = 0;
  template <class A> void Visit(A& a) { a(mine, theirs, bytes); }
};
// A call has waited for room in a TCP socket of the real machine.
struct NetworkFull {
  using Reply = Empty;
  template <class A> void Visit(A&) {}
};

// --- errors ------------------------------------------------------------------------------------
// Both only where HelloReply::stacks is set.

// A function of CUDA's runtime or driver returns an error. Those of the driver also come from within
// functions of the runtime; the node tells by the stack.
struct ApiError {
  using Reply = Empty;
  std::int32_t error = 0;
  std::string name, text;  // "cudaErrorInvalidValue", "invalid argument"
  std::string arguments;   // "(device=99)"; may be empty
  template <class A> void Visit(A& a) { a(error, name, text, arguments); }
};
// The thread has asked for its last error, which was one.
struct ApiErrorSeen {
  using Reply = Empty;
  template <class A> void Visit(A&) {}
};

// --- ranges ------------------------------------------------------------------------------------

// Nothing but its header, for RequestHeader::ranges.
struct Ranges {
  using Reply = Empty;
  template <class A> void Visit(A& a) { a(); }
};

// clang-format on
}  // namespace allranks::wire
