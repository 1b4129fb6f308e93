// A host thread's link to the node: one connection per thread, opened when the thread begins,
// closed when it ends. Calls are made by the thread itself and need no locks. A thread without a
// link (created behind our back, or after the node died) runs natively.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "wire/messages.h"

namespace allranks::shim {

inline constexpr int kMaxThreads = 1024;
inline constexpr int kNoLink = -1;  // Call's answer without a node

// What a thread saw of pinned memory since its last message (pinned.cpp).
struct PollRecord {
  std::uint64_t state[2];  // hash of registers, stack and clock at the access
  std::uint64_t pc;
  std::uint64_t address;
  std::uint32_t size;
  std::uint64_t seen[2];
};
inline constexpr int kPollRecords = 64;
inline constexpr int kPollPlaces = 24;

struct Thread {
  std::atomic<bool> used{false};
  int socket = -1;
  std::uint64_t number = 0;  // as the node counts
  std::uint64_t sequence = 0;
  std::int64_t clock = 0;  // ps, from the last reply
  std::int64_t local = 0;  // ps added by reads of the clock since
  std::uint32_t clock_reads = 0;
  // Even while native code runs, odd during a call. The helper of pinned.cpp reads it.
  std::atomic<std::uint64_t> segment{0};
  wire::Blob send, receive;

  // The pinned access that is being stepped over, and those recorded in this segment.
  std::uint64_t poll_segment = 0;
  int polls = 0;
  std::uint32_t faults = 0;
  int places = 0;
  std::uint64_t place[kPollPlaces];
  std::int64_t poll_waited = 0;     // ps, by loops that count, since the last other message
  std::uint64_t poll_sequence = 0;  // of the message that ended such a wait
  int insist = 0;                   // how many more fixed points are no reason to wait
  // CPU time of the thread until which its loop runs without faults (ns; 0: it does not).
  std::atomic<std::int64_t> native_until{0};
  std::atomic<std::int64_t> native_wall_until{0};  // CLOCK_MONOTONIC: it is over then in any case
  std::atomic<int> tid{0};
  PollRecord records[kPollRecords];
  PollRecord pending;
  bool stepping = false;
  bool pending_write = false;
  int open_pages = 0;
  std::uint64_t open_page[4];
  // What it has touched in this segment, and mappings of which it touches too much to tell.
  std::size_t touches = 0;
  wire::HostTouch touch[wire::kMaxTouches];
  // Of the call that is being made.
  std::size_t frames = 0;
  std::uint64_t stack[wire::kMaxStack];
  int bulks = 0;
  std::uint64_t bulk[8];
  // What it has marked since its last message, encoded (ranges.cpp).
  std::uint32_t ranges = 0;
  std::size_t range_size = 0;
  std::byte* range_bytes = nullptr;  // room for kMaxRangeBytes, made at first use
};

// True if this process runs under a node that is alive.
bool Linked();
// The calling thread's link, or nullptr: not linked, or inside this library, where everything that
// is interposed must behave natively.
Thread* Self();
// The process's token.
std::uint64_t ProcessToken();
// The simulated host this process is on, and how many there are.
int SimulatedHost();
int SimulatedHosts();
// Whether the node counts what goes through sockets.
bool ReportsSockets();
std::int64_t RealtimeBaseNs();
std::int64_t MonotonicBaseNs();
// The node's last word on whether devices or other threads may change pinned memory.
bool NodeBusy();
// Whether it wants to know what host code touches (RequestHeader::touches).
bool NodeWatches();
// The node has asked for stacks.
bool StacksWanted();
// Return addresses of the caller, innermost first; none unless the node has asked for stacks.
std::size_t Stack(std::uint64_t* addresses, std::size_t most);
// The same, whatever it has asked for.
std::size_t Unwind(std::uint64_t* addresses, std::size_t most);
// Whether it wants to know where this call was made.
bool WantsStackOf(wire::Op op);
Thread* ThreadSlots();

// While one lives, this thread's libc calls are native.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// Sends thread.send (RequestHeader and body, already encoded) and `tail`, receives into
// thread.receive. A CUresult or kNoLink; `body` is the reply's struct.
int Exchange(Thread* thread, wire::Op op, std::span<const std::byte> tail, std::span<const int> fds,
             std::span<const std::byte>* body, int* received_fd);

// Begins a request in thread.send.
void BeginRequest(Thread* thread);

template <class T>
int Call(Thread* thread, const T& request, typename T::Reply* reply,
         std::span<const int> fds = {}) {
  Inside inside;
  BeginRequest(thread);
  wire::EncodeTo(request, thread->send);
  std::span<const std::byte> body;
  const int status = Exchange(thread, wire::kOpOf<T>, {}, fds, &body, nullptr);
  if (status == kNoLink) return kNoLink;
  return wire::DecodeFrom(body, reply) ? status : kNoLink;
}
template <class T>
int Call(Thread* thread, const T& request) {
  typename T::Reply ignored;
  return Call(thread, request, &ignored);
}

// Opens the calling thread's link; `thread` is the number from NewThread (0: none was announced).
void OpenThreadLink(std::uint64_t thread);
// Says ThreadExit and closes it.
void CloseThreadLink();

// In a new child process: drops what belongs to the parent and joins the node. Token 0:
// unannounced.
void RejoinAfterFork(std::uint64_t token);
// The parent is about to fork by our wrapper, so the atfork handler leaves the child alone.
void SetForking(bool forking);

// True if this is one of the library's own descriptors.
bool IsOwnDescriptor(int fd);

// Words for stderr, without stdio.
void Complain(const char* text);

}  // namespace allranks::shim
