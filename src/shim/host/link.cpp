// The link to the node: joining it when the process starts, one connection per thread, and what
// happens when the node is gone. See src/wire/messages.h for the protocol.
#include "shim/host/link.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <unwind.h>

#include "shim/abi.h"
#include "shim/host/clock.h"
#include "shim/host/identity.h"
#include "shim/host/locks.h"
#include "shim/host/pinned.h"
#include "shim/host/real.h"
#include "wire/frame.h"
#include "wire/raw_syscall.h"

namespace allranks::shim {
namespace {

using wire::RawSyscall;

// Own descriptors live up here, out of the way of programs that number or close theirs.
constexpr int kFirstDescriptor = 700;

// Never destroyed: threads and atexit handlers may call after this library's own end.
union Slots {
  constexpr Slots() : threads{} {}
  ~Slots() {}
  Thread threads[kMaxThreads];
};
constinit Slots g_slots;
constinit auto& g_threads = g_slots.threads;
constinit std::atomic<bool> g_active{false};
constinit std::atomic<bool> g_dead{false};
constinit std::atomic<bool> g_busy{false};
constinit std::atomic<bool> g_watches{false};
constinit std::atomic<bool> g_stacks{false};
constinit std::atomic<bool> g_call_stacks{false};
constinit std::atomic<bool> g_cuda{false};
constinit std::atomic<bool> g_cuda_lost{false};
std::uint64_t g_token = 0;
std::int64_t g_realtime_base = 0, g_monotonic_base = 0;
int g_host = 0, g_hosts = 1;
bool g_sockets = false;
char g_socket_path[sizeof(sockaddr_un::sun_path)];
pthread_key_t g_exit_key;

// initial-exec: reachable from a signal handler without allocation.
#define ALLRANKS_TLS thread_local __attribute__((tls_model("initial-exec")))
ALLRANKS_TLS constinit Thread* t_self = nullptr;
ALLRANKS_TLS constinit int t_inside = 0;
ALLRANKS_TLS constinit bool t_ended = false;
ALLRANKS_TLS constinit bool t_forking = false;

int Connect() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, g_socket_path, sizeof g_socket_path);
  int fd = static_cast<int>(RawSyscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd < 0) return -1;
  const long moved = RawSyscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kFirstDescriptor);
  if (moved >= 0) {
    RawSyscall(SYS_close, fd);
    fd = static_cast<int>(moved);
  }
  long connected;
  do {
    connected = RawSyscall(SYS_connect, fd, reinterpret_cast<long>(&address), sizeof address);
  } while (connected == -EINTR);
  if (connected < 0) {
    RawSyscall(SYS_close, fd);
    return -1;
  }
  return fd;
}

Thread* TakeSlot() {
  for (Thread& thread : g_threads) {
    bool free = false;
    if (!thread.used.load(std::memory_order_relaxed) &&
        thread.used.compare_exchange_strong(free, true)) {
      return &thread;
    }
  }
  return nullptr;
}

void FreeSlot(Thread* thread) {
  if (thread->socket >= 0) RawSyscall(SYS_close, thread->socket);
  thread->socket = -1;
  thread->segment.store(0, std::memory_order_relaxed);
  thread->native_until.store(0, std::memory_order_relaxed);
  thread->used.store(false, std::memory_order_release);
}

void MarkDead(Thread* thread) {
  const std::int64_t last = thread->clock + thread->local;
  if (!g_dead.exchange(true)) ClockGoesOnWithoutNode(last);
  OpenPinnedPages();
}

// Connects and says Hello. Without success the thread goes on natively.
void Join(wire::Hello::Kind kind, std::uint64_t token, std::uint64_t number,
          const Placement& placement = {}) {
  Inside inside;
  Thread* thread = TakeSlot();
  if (thread == nullptr) return;
  thread->socket = Connect();
  thread->sequence = 0;
  thread->clock = thread->local = 0;
  thread->clock_reads = 0;
  thread->polls = 0;
  thread->insist = 0;
  thread->tid.store(static_cast<int>(RawSyscall(SYS_gettid)), std::memory_order_relaxed);
  thread->stepping = false;
  thread->open_pages = 0;
  thread->touches = 0;
  thread->bulks = 0;
  thread->frames = 0;
  thread->ranges = 0;
  thread->range_size = 0;
  // Small requests must not allocate: they may be made from within an allocator's locks.
  thread->send.reserve(8192);
  thread->receive.reserve(1024);
  wire::HelloReply reply;
  wire::Hello hello;
  hello.kind = kind;
  hello.tid = thread->tid.load(std::memory_order_relaxed);
  hello.token = token;
  hello.thread = number;
  hello.rank = placement.rank;
  hello.host = placement.host;
  hello.placed = placement.placed;
  if (thread->socket < 0 || Call(thread, hello, &reply) != 0) {
    FreeSlot(thread);
    if (!g_dead.exchange(true)) ClockGoesOnWithoutNode(0);
    return;
  }
  thread->number = reply.thread;
  g_token = reply.token;
  g_host = reply.host;
  g_hosts = reply.hosts;
  g_sockets = reply.sockets;
  g_stacks.store(reply.stacks, std::memory_order_relaxed);
  g_call_stacks.store(reply.call_stacks, std::memory_order_relaxed);
  g_realtime_base = reply.realtime_base_ns;
  g_monotonic_base = reply.monotonic_base_ns;
  t_self = thread;
  pthread_setspecific(g_exit_key, reinterpret_cast<void*>(std::intptr_t{1}));
}

// Runs among the thread's other key destructors; lets them have three rounds, as they may still
// call what is interposed, and then says goodbye.
void AtThreadExit(void* value) {
  const auto round = reinterpret_cast<std::intptr_t>(value);
  if (round < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(g_exit_key, reinterpret_cast<void*>(round + 1));
    return;
  }
  CloseThreadLink();
}

void AtForkChild() {
  if (g_active.load() && !t_forking) RejoinAfterFork(0);
}

struct Frames {
  std::uint64_t* addresses;
  std::size_t most, count = 0;
};

_Unwind_Reason_Code NextFrame(_Unwind_Context* context, void* argument) {
  auto* frames = static_cast<Frames*>(argument);
  const _Unwind_Ptr at = _Unwind_GetIP(context);
  if (at == 0 || frames->count == frames->most) return _URC_END_OF_STACK;
  frames->addresses[frames->count++] = at;
  return _URC_NO_REASON;
}

// "child:<hex>" or "exec:<hex>", set by whoever started this image.
wire::Hello::Kind JoinKind(std::uint64_t* token) {
  const char* join = getenv("ALLRANKS_JOIN");
  wire::Hello::Kind kind = wire::Hello::Kind::kRoot;
  if (join != nullptr && strncmp(join, "child:", 6) == 0) {
    kind = wire::Hello::Kind::kChild;
    *token = strtoull(join + 6, nullptr, 16);
  } else if (join != nullptr && strncmp(join, "exec:", 5) == 0) {
    kind = wire::Hello::Kind::kExec;
    *token = strtoull(join + 5, nullptr, 16);
  }
  if (join != nullptr) unsetenv("ALLRANKS_JOIN");
  return kind;
}

__attribute__((constructor)) void Start() {
  const char* path = getenv("ALLRANKS_SOCKET");
  if (path == nullptr || path[0] == '\0') return;
  if (strlen(path) >= sizeof g_socket_path) {
    Complain("allranks: ALLRANKS_SOCKET is too long for a Unix socket\n");
    return;
  }
  memcpy(g_socket_path, path, strlen(path) + 1);
  if (pthread_key_create(&g_exit_key, AtThreadExit) != 0) return;
  std::uint64_t token = 0;
  const wire::Hello::Kind kind = JoinKind(&token);
  g_active.store(true);
  Join(kind, token, 0, PlacementByEnvironment());
  if (t_self == nullptr) {
    Complain("allranks: cannot reach the node at ALLRANKS_SOCKET; running without it\n");
    return;
  }
  pthread_atfork(nullptr, nullptr, AtForkChild);
}

}  // namespace

Inside::Inside() { ++t_inside; }
Inside::~Inside() { --t_inside; }

bool Linked() {
  return g_active.load(std::memory_order_relaxed) && !g_dead.load(std::memory_order_relaxed);
}

Thread* Self() {
  if (t_inside != 0 || t_self == nullptr || g_dead.load(std::memory_order_relaxed)) return nullptr;
  return t_self;
}

std::uint64_t ProcessToken() { return g_token; }
int SimulatedHost() { return g_host; }
int SimulatedHosts() { return g_hosts; }
bool ReportsSockets() { return g_sockets; }
std::int64_t RealtimeBaseNs() { return g_realtime_base; }
std::int64_t MonotonicBaseNs() { return g_monotonic_base; }
bool NodeBusy() { return g_busy.load(std::memory_order_relaxed); }
bool NodeWatches() { return g_watches.load(std::memory_order_relaxed); }
Thread* ThreadSlots() { return g_threads; }
void SetForking(bool forking) { t_forking = forking; }

bool IsOwnDescriptor(int fd) {
  if (!g_active.load(std::memory_order_relaxed) || fd < 0) return false;
  for (const Thread& thread : g_threads) {
    if (thread.used.load(std::memory_order_relaxed) && thread.socket == fd) return true;
  }
  return false;
}

void Complain(const char* text) {
  RawSyscall(SYS_write, 2, reinterpret_cast<long>(text), static_cast<long>(strlen(text)));
}

void BeginRequest(Thread* thread) {
  thread->send.clear();
  // By hand into reserved memory: a handler may not allocate.
  wire::Writer writer(thread->send);
  auto count = static_cast<std::uint32_t>(thread->touches);
  writer(thread->local, count);
  for (std::size_t i = 0; i < thread->touches; ++i) thread->touch[i].Visit(writer);
  thread->touches = 0;
  auto frames = static_cast<std::uint32_t>(thread->frames);
  writer(frames);
  for (std::size_t i = 0; i < thread->frames; ++i) writer(thread->stack[i]);
  thread->frames = 0;
  writer(thread->ranges);
  thread->send.insert(thread->send.end(), thread->range_bytes,
                      thread->range_bytes + thread->range_size);
  thread->ranges = 0;
  thread->range_size = 0;
}

bool StacksWanted() { return g_stacks.load(std::memory_order_relaxed); }

std::size_t Stack(std::uint64_t* addresses, std::size_t most) {
  return StacksWanted() ? Unwind(addresses, most) : 0;
}

bool WantsStackOf(wire::Op op) {
  const wire::MessageInfo info = wire::InfoOf(op);
  return (StacksWanted() && info.Has(wire::kWantsStack)) ||
         (g_call_stacks.load(std::memory_order_relaxed) && info.cost != wire::Cost::kNothing);
}

std::size_t Unwind(std::uint64_t* addresses, std::size_t most) {
  Frames frames{addresses, most};
  _Unwind_Backtrace(&NextFrame, &frames);
  return frames.count;
}

int Exchange(Thread* thread, wire::Op op, std::span<const std::byte> tail, std::span<const int> fds,
             std::span<const std::byte>* body, int* received_fd) {
  if (g_dead.load(std::memory_order_relaxed)) return kNoLink;
  const int saved_errno = errno;
  thread->segment.fetch_add(1, std::memory_order_relaxed);
  thread->native_until.store(0, std::memory_order_relaxed);
  const std::uint64_t sequence = ++thread->sequence;
  bool good;
  if (tail.empty()) {
    good = wire::SendFrame(thread->socket, op, sequence, thread->send, fds);
  } else {
    good = wire::SendFrameInTwoParts(thread->socket, op, sequence, thread->send, tail);
  }
  wire::Op reply_op = wire::Op::kNone;
  std::uint64_t reply_sequence = 0;
  int fd = -1, fd_count = 0;
  good = good && wire::ReceiveFrame(thread->socket, &reply_op, &reply_sequence, &thread->receive,
                                    &fd, 1, &fd_count);
  wire::ReplyHeader header;
  if (good) {
    std::span<const std::byte> rest = thread->receive;
    good = reply_op == op && reply_sequence == sequence && wire::DecodeFrom(rest, &header);
    *body = rest;
  }
  if (fd_count > 0) {
    if (received_fd != nullptr && good) {
      *received_fd = fd;
    } else {
      RawSyscall(SYS_close, fd);
    }
  }
  if (!good) {
    MarkDead(thread);
    thread->segment.fetch_add(1, std::memory_order_relaxed);
    errno = saved_errno;
    return kNoLink;
  }
  thread->clock = header.clock;
  thread->local = 0;
  thread->clock_reads = 0;
  g_busy.store(header.busy, std::memory_order_relaxed);
  g_watches.store(header.watch, std::memory_order_relaxed);
  if (header.busy || header.watch) {
    ClosePinnedPages();
  } else {
    OpenPinnedPages();
  }
  if (thread->send.capacity() > (1u << 20)) {
    thread->send = wire::Blob();
    thread->send.reserve(8192);
  }
  thread->segment.fetch_add(1, std::memory_order_relaxed);
  // By stdio, so that it stands in order with what the program prints.
  if (!header.out.empty()) std::fwrite(header.out.data(), 1, header.out.size(), stdout);
  if (!header.err.empty()) std::fwrite(header.err.data(), 1, header.err.size(), stderr);
  errno = saved_errno;
  return header.status;
}

void OpenThreadLink(std::uint64_t thread) {
  if (!Linked() || t_self != nullptr || t_ended) return;
  Join(wire::Hello::Kind::kThread, g_token, thread);
}

void CloseThreadLink() {
  Thread* thread = t_self;
  if (thread == nullptr) return;
  Call(thread, wire::ThreadExit{});
  t_self = nullptr;
  t_ended = true;
  FreeSlot(thread);
}

void RejoinAfterFork(std::uint64_t token) {
  Inside inside;
  for (Thread& thread : g_threads) {
    if (thread.used.load(std::memory_order_relaxed)) FreeSlot(&thread);
  }
  t_self = nullptr;
  ForgetWaiters();
  if (g_cuda.load()) g_cuda_lost.store(true);
  MakePinnedPrivate();
  if (g_dead.load()) return;
  Join(token == 0 ? wire::Hello::Kind::kRoot : wire::Hello::Kind::kChild, token, 0);
}

}  // namespace allranks::shim

using allranks::shim::Inside;
using allranks::shim::Thread;

int ar_call(std::uint16_t op, const void* head, std::size_t head_size, const void* tail,
            std::size_t tail_size, int fd, ArReply* reply) {
  namespace shim = allranks::shim;
  Thread* thread = shim::Self();
  if (thread == nullptr) {
    shim::OpenThreadLink(0);  // a thread that nobody announced speaks for the first time
    thread = shim::Self();
    if (thread == nullptr) return kArNoNode;
  }
  Inside inside;
  if (shim::WantsStackOf(static_cast<allranks::wire::Op>(op)))
    thread->frames = shim::Unwind(thread->stack, allranks::wire::kMaxStack);
  shim::BeginRequest(thread);
  const auto* bytes = static_cast<const std::byte*>(head);
  thread->send.insert(thread->send.end(), bytes, bytes + head_size);
  std::span<const std::byte> body;
  reply->fd = -1;
  reply->status = shim::Exchange(
      thread, static_cast<allranks::wire::Op>(op), {static_cast<const std::byte*>(tail), tail_size},
      fd >= 0 ? std::span<const int>(&fd, 1) : std::span<const int>(), &body, &reply->fd);
  if (reply->status == shim::kNoLink) return kArNoNode;
  reply->body = body.data();
  reply->size = body.size();
  return kArOk;
}

std::size_t ar_stack(std::uint64_t* addresses, std::size_t most) {
  return allranks::shim::Stack(addresses, most);
}

void ar_cuda_initialised() { allranks::shim::g_cuda.store(true); }
bool ar_cuda_lost_by_fork() { return allranks::shim::g_cuda_lost.load(); }

int allranks_barrier(const char* name, unsigned count) {
  Thread* thread = allranks::shim::Self();
  if (thread == nullptr || name == nullptr) return -1;
  allranks::wire::BootstrapBarrier barrier;
  barrier.name = name;
  barrier.count = count;
  return allranks::shim::Call(thread, barrier) == 0 ? 0 : -1;
}

// Programs that close every descriptor they do not know must not cut the link.
ALLRANKS_INTERPOSE int close(int fd) {
  if (allranks::shim::IsOwnDescriptor(fd)) {
    errno = EBADF;
    return -1;
  }
  return ALLRANKS_REAL(close)(fd);
}

// Closes (or marks) what lies between the library's own descriptors.
ALLRANKS_INTERPOSE int close_range(unsigned first, unsigned last, int flags) noexcept {
  for (unsigned from = first; from <= last;) {
    unsigned own = UINT_MAX;  // the next of ours
    if (allranks::shim::Linked()) {
      for (int i = 0; i < allranks::shim::kMaxThreads; ++i) {
        const Thread& thread = allranks::shim::ThreadSlots()[i];
        if (!thread.used.load(std::memory_order_relaxed) || thread.socket < 0) continue;
        const auto fd = static_cast<unsigned>(thread.socket);
        if (fd >= from && fd < own) own = fd;
      }
    }
    const unsigned to = own > last ? last : own - 1;
    if (own != from) {
      const int result = ALLRANKS_REAL(close_range)(from, to, flags);
      if (result != 0) return result;
    }
    if (own >= last) break;
    from = own + 1;
  }
  return 0;
}

ALLRANKS_INTERPOSE void closefrom(int first) noexcept {
  close_range(first < 0 ? 0 : static_cast<unsigned>(first), UINT_MAX, 0);
}
