// What every message has: the number of its operation, and the headers of requests and replies.
// wire/messages.h has the theory of operation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "wire/codec.h"

namespace allranks::wire {

inline constexpr std::uint16_t kProtocolVersion = 17;
// Data of one copy or image request; the shim splits what is larger.
inline constexpr std::uint32_t kMaxChunk = 64u << 20;
inline constexpr std::uint32_t kMaxPayload = kMaxChunk + (64u << 10);
// File descriptors that one frame can carry.
inline constexpr int kMaxFds = 64;

enum class Op : std::uint16_t {
  kNone = 0,
#define ALLRANKS_MESSAGE(type, name, sender, cost, traits) k##type,
#include "wire/messages.def"
#undef ALLRANKS_MESSAGE
  kAfterLast,
  kLast_ = kAfterLast - 1,
};

enum class Sender : std::uint8_t { kNobody, kFirst, kRank, kJudgedRank, kSupervisor, kNode };
enum class Cost : std::uint8_t { kNothing, kHostCall, kApiCall, kLaunch, kGraphLaunch };
enum MessageTraits : std::uint8_t { kFlushesText = 1, kWantsStack = 2 };

// What messages.def has of an operation.
struct MessageInfo {
  const char* name = "?";
  Sender sender = Sender::kNobody;
  Cost cost = Cost::kNothing;
  std::uint8_t traits = 0;
  constexpr bool Has(MessageTraits trait) const { return (traits & trait) != 0; }
};

inline constexpr MessageInfo kMessages[] = {
    {"none"},
#define ALLRANKS_MESSAGE(type, name, sender, cost, traits) \
  {#name, Sender::sender, Cost::cost, traits},
#include "wire/messages.def"
#undef ALLRANKS_MESSAGE
};

// A number that is none has the name "?".
constexpr MessageInfo InfoOf(Op op) {
  return op < Op::kAfterLast ? kMessages[static_cast<std::size_t>(op)] : MessageInfo{};
}
// For logs and reports: "hello", "wait_fd", ...
constexpr const char* OpName(Op op) { return InfoOf(op).name; }

#define ALLRANKS_MESSAGE(type, name, sender, cost, traits) struct type;
#include "wire/messages.def"
#undef ALLRANKS_MESSAGE

// The operation that a message's struct is for.
template <class M>
inline constexpr Op kOpOf = Op::kNone;
#define ALLRANKS_MESSAGE(type, name, sender, cost, traits) \
  template <>                                              \
  inline constexpr Op kOpOf<type> = Op::k##type;
#include "wire/messages.def"
#undef ALLRANKS_MESSAGE

// One line per Visit, so that a struct and its description stand side by side.
// clang-format off
// An instruction of host code that has touched memory which devices see.
struct HostTouch {
  std::uint64_t address = 0;
  std::uint32_t size = 0;    // bytes, at most 16
  bool write = false;
  std::uint64_t pc = 0;
  std::uint64_t caller = 0;  // the word at the top of the stack: where a library's leaf returns to
  // Return addresses of the functions around it, innermost first, as far as frame pointers show
  // them; 0: none.
  std::array<std::uint64_t, 4> above{};
  template <class A> void Visit(A& a) { a(address, size, write, pc, caller, above); }
};
inline constexpr std::size_t kMaxTouches = 48;
// Frames of a stack that are sent, those of the shim included.
inline constexpr std::size_t kMaxStack = 24;

// What the program has marked by NVTX.
struct RangeEvent {
  enum class Kind : std::uint8_t {
    kPush, kPop,    // of the thread and domain
    kStart, kEnd,   // `id`: of the process
    kMark,
    kNameThread,    // `id`: the system's number of the thread
    kNameStream,    // `id`: the stream's number
    kLast_ = kNameStream
  };
  Kind kind = Kind::kMark;
  std::int64_t at = 0;  // the thread's clock, ps
  std::uint64_t id = 0;
  std::string domain, text;
  template <class A> void Visit(A& a) { a(kind, at, id, domain, text); }
};
// Of one message: beyond these the shim sends a message for their sake.
inline constexpr std::size_t kMaxRanges = 256;
inline constexpr std::size_t kMaxRangeBytes = 3072;  // encoded
inline constexpr std::size_t kMaxRangeText = 256;

struct RequestHeader {
  // What reads of the clock have added to the thread's clock since its last message.
  std::int64_t local_ps = 0;
  // Since its last message, where the node checks: the first of them, at most kMaxTouches.
  std::vector<HostTouch> touches;
  // Where the call was made, if the node has asked for it (HelloReply::stacks): return addresses,
  // innermost first, at most kMaxStack. Empty for calls that make no work and no memory.
  std::vector<std::uint64_t> stack;
  std::vector<RangeEvent> ranges;  // since the thread's last message, at most kMaxRanges
  template <class A> void Visit(A& a) { a(local_ps, touches, stack, ranges); }
};

struct ReplyHeader {
  std::int32_t status = 0;    // CUresult
  bool busy = false;          // devices or other threads may change what the thread polls
  bool watch = false;         // what the thread touches of memory that devices see is wanted
  std::int64_t clock = 0;     // the thread's clock from now on, ps
  std::string out, err;       // what kernels have printed: for the process's stdout and stderr
  template <class A> void Visit(A& a) { a(status, busy, watch, clock, out, err); }
};

struct Empty {
  template <class A> void Visit(A& a) { a(); }
};
// clang-format on

}  // namespace allranks::wire
