// Pinned memory is mapped into the process, so a host thread can poll it without the node's
// knowledge, while the node lets no virtual time pass before that thread speaks. This file makes
// such a spin a message; pinned_spin.cpp says what is one.
//
// Theory of operation. While device work is unfinished (the node says so with every reply) the
// pinned mappings cannot be accessed. An access faults: the SIGSEGV handler opens the page, notes
// the registers, the top of the stack and the bytes at the address, and lets the one instruction
// run with the trap flag; the SIGTRAP handler closes the page again. When a noted state occurs
// again in a segment, with the same accesses and no store in between, the thread is most probably
// in a loop which can only be left when the bytes that it read in the loop change. The thread then
// sends HostPoll from within the handler and goes on when the node says that a byte has changed. A
// loop that counts its rounds has no two states alike: after kPollRecords reads that gave nothing
// new it waits too, but only for a while.
//
// It is no proof: the loop may count in memory that is not looked at, or read an ordinary variable
// that another host thread changes. So the node also wakes the loop when other threads of the
// process have run, and before it reports a deadlock: then the loop runs without faults for
// kDoubtNs of CPU time, and only if it is in the same poll after that is it stuck. (At most
// kDoubtWallNs of wall time: it may have gone to sleep, and pages are open for all.) A thread that
// polls while the devices are idle would hold up the others; so pages are closed without
// device work, too, while the process has several threads.
//
// A fault takes microseconds, so a thread that touches many places, or a few very often, has the
// pages opened for the rest of its segment. In case it then begins to spin, a helper thread looks
// every few milliseconds for threads that have not spoken since, and closes the pages again.
//
// Where the node checks, the pages are also closed while the process has not waited for work that
// is over, and the first accesses of each segment go along with the thread's next message (Touch).
// Of a mapping that a thread touches at many places no more is told, and it alone is opened.
//
// Virtual time does not depend on any of this: a native segment takes none, and the node changes no
// pinned byte during it, so a spin is the same fixed point, however many rounds were made before it
// was seen. Only a loop that counts after bulk access in the same segment can tell when the helper
// looked.
#include "shim/host/pinned.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>

#include "shim/abi.h"
#include "shim/host/link.h"
#include "shim/host/pinned_spin.h"
#include "shim/host/real.h"
#include "wire/raw_syscall.h"

namespace allranks::shim {
namespace {

using wire::RawSyscall;

constexpr int kMaxMappings = 4096;
constexpr std::uint32_t kMaxFaults = 256;
constexpr int kMaxPatienceMs = 64;

constinit Mapping g_mappings[kMaxMappings];
constinit std::atomic<int> g_mapping_count{0};
constinit std::atomic<bool> g_closed{false};
constinit std::atomic<bool> g_loose{false};  // while closed: some mapping is open all the same
constinit std::atomic<bool> g_edges_closed{false};  // the mappings' heads and tails, too
constinit std::atomic<std::uint64_t> g_held_begin{0}, g_held_end{0};
constinit std::atomic<bool> g_handlers{false};
constinit std::atomic<bool> g_helper{false};
struct sigaction g_user_action[NSIG];

// Held for short times and never while pinned memory is touched, so a handler may take it.
class MappingLock {
 public:
  MappingLock() {
    while (flag_.test_and_set(std::memory_order_acquire)) RawSyscall(SYS_sched_yield);
  }
  ~MappingLock() { flag_.clear(std::memory_order_release); }

 private:
  static constinit std::atomic_flag flag_;
};
constinit std::atomic_flag MappingLock::flag_;

void Protect(std::uint64_t address, std::uint64_t size, int protection) {
  RawSyscall(SYS_mprotect, static_cast<long>(address), static_cast<long>(size), protection);
}

// Pages that are wholly ours.
void CloseBody(const Mapping& mapping) {
  const std::uint64_t body = mapping.size - mapping.head - mapping.tail;
  if (body != 0) Protect(mapping.address + mapping.head, body, PROT_NONE);
}

bool IsHeld(std::uint64_t address) {
  return address >= g_held_begin.load(std::memory_order_acquire) &&
         address < g_held_end.load(std::memory_order_acquire);
}

// A thread is silent: it may be spinning on a page that is only partly ours.
void CloseEdges() {
  ClosePinnedPages();
  if (g_edges_closed.load(std::memory_order_relaxed)) return;
  MappingLock lock;
  const int count = g_mapping_count.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    const Mapping& mapping = g_mappings[i];
    if (mapping.head != 0) Protect(mapping.address, mapping.head, PROT_NONE);
    if (mapping.tail != 0)
      Protect(mapping.address + mapping.size - mapping.tail, mapping.tail, PROT_NONE);
  }
  g_edges_closed.store(true, std::memory_order_relaxed);
}

// --- the helper --------------------------------------------------------------------------------

void* Helper(void*) {
  Inside inside;
  static std::uint64_t seen[kMaxThreads];
  memset(seen, 0, sizeof seen);
  for (;;) {
    const timespec pause{0, 1'000'000L * g_patience_ms.load(std::memory_order_relaxed)};
    RawSyscall(SYS_nanosleep, reinterpret_cast<long>(&pause));
    bool silent = false, native = false;
    for (int i = 0; i < kMaxThreads; ++i) {
      const Thread& thread = ThreadSlots()[i];
      if (!thread.used.load(std::memory_order_relaxed)) continue;
      const std::uint64_t segment = thread.segment.load(std::memory_order_relaxed);
      if (segment == seen[i] && segment % 2 == 0) silent = true;
      if (RunsNatively(&thread)) native = true;
      seen[i] = segment;
    }
    if (silent && !native && Linked() && NodeBusy()) CloseEdges();
  }
}

void StartHelper() {
  if (g_helper.exchange(true)) return;
  sigset_t all, old;
  sigfillset(&all);
  ALLRANKS_REAL(pthread_sigmask)(SIG_SETMASK, &all, &old);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 128 << 10);
  pthread_t thread;
  if (ALLRANKS_REAL(pthread_create)(&thread, &attributes, Helper, nullptr) != 0)
    g_helper.store(false);
  pthread_attr_destroy(&attributes);
  ALLRANKS_REAL(pthread_sigmask)(SIG_SETMASK, &old, nullptr);
}

// --- faults ------------------------------------------------------------------------------------

// The mapping around `address`; of size 0 if there is none.
Mapping MappingOf(std::uint64_t address) {
  MappingLock lock;
  const int count = g_mapping_count.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    if (address - g_mappings[i].address < g_mappings[i].size) return g_mappings[i];
  }
  return {};
}

bool IsBulk(const Thread* thread, const Mapping& mapping) {
  const std::uint64_t* end = thread->bulk + thread->bulks;
  return thread->bulks == static_cast<int>(std::size(thread->bulk)) ||
         std::find(thread->bulk, end, mapping.address) != end;
}

// The thread touches so many places of a mapping that these are not told one by one. False: too
// many mappings, or none.
bool OpenBulk(Thread* thread, std::uint64_t address) {
  const Mapping mapping = MappingOf(address);
  if (mapping.size == 0) return false;
  if (!IsBulk(thread, mapping)) thread->bulk[thread->bulks++] = mapping.address;
  if (thread->bulks == static_cast<int>(std::size(thread->bulk))) return false;
  MappingLock lock;
  if (g_closed.load(std::memory_order_relaxed)) {
    Protect(mapping.address, mapping.size, mapping.protection);
    g_loose.store(true, std::memory_order_relaxed);
  }
  return true;
}

void WaitLonger() {
  const int patience = g_patience_ms.load(std::memory_order_relaxed);
  if (patience < kMaxPatienceMs) g_patience_ms.store(patience * 2, std::memory_order_relaxed);
}

// Follows frame pointers. In code without them the register holds anything: the kernel reads what
// it points to, which fails where nothing is.
void FollowFrames(std::uint64_t frame, std::array<std::uint64_t, 4>* above) {
  std::size_t count = 0;
  while (count < above->size() && frame % sizeof(std::uint64_t) == 0) {
    std::uint64_t found[2] = {};  // the frame before it, and where it returns to
    iovec into = {found, sizeof found};
    iovec from = {reinterpret_cast<void*>(frame), sizeof found};
    if (RawSyscall(SYS_process_vm_readv, RawSyscall(SYS_getpid), reinterpret_cast<long>(&into), 1,
                   reinterpret_cast<long>(&from), 1, 0) != sizeof found)
      return;
    (*above)[count++] = found[1];
    if (found[0] <= frame) return;
    frame = found[0];
  }
}

// Notes what an instruction is about to touch, for the thread's next message.
void Touch(Thread* thread, std::uint64_t address, std::uint32_t size, const greg_t* registers) {
  if (!NodeWatches() || thread->touches == wire::kMaxTouches || IsBulk(thread, MappingOf(address)))
    return;
  wire::HostTouch touch;
  touch.address = address;
  touch.size = std::min(size, static_cast<std::uint32_t>(kPage - address % kPage));
  touch.write = (registers[REG_ERR] & 2) != 0;
  touch.pc = static_cast<std::uint64_t>(registers[REG_RIP]);
  for (std::size_t i = 0; i < thread->touches; ++i) {
    const wire::HostTouch& known = thread->touch[i];
    if (known.address == touch.address && known.pc == touch.pc && known.write == touch.write)
      return;
  }
  touch.caller = *reinterpret_cast<const std::uint64_t*>(registers[REG_RSP]);
  if (StacksWanted()) FollowFrames(static_cast<std::uint64_t>(registers[REG_RBP]), &touch.above);
  thread->touch[thread->touches++] = touch;
}

// Opens the page of a fault in pinned memory and arranges for the trap behind the instruction.
void BeginStep(Thread* thread, std::uint64_t address, int protection, ucontext_t* context) {
  greg_t* registers = context->uc_mcontext.gregs;
  const std::uint64_t segment = thread->segment.load(std::memory_order_relaxed);
  if (thread->poll_segment != segment) {
    thread->poll_segment = segment;
    thread->polls = 0;
    thread->faults = 0;
    thread->places = 0;
    thread->bulks = 0;
  }
  // The trap flag stops a repeated move at every element.
  const bool many = IsManyPlaces(thread, address) ||
                    IsRepeatedMove(reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]));
  if (many && NodeWatches() && !thread->stepping && OpenBulk(thread, address)) {
    WaitLonger();
    thread->polls = 0;
    thread->faults = 0;
    thread->places = 0;
    return;
  }
  if (++thread->faults > kMaxFaults || many || thread->open_pages == 4) {
    WaitLonger();
    OpenPinnedPages();
    registers[REG_EFL] &= ~kTrapFlag;
    thread->stepping = false;
    thread->open_pages = 0;
    thread->polls = 0;
    thread->faults = 0;  // when the pages are closed the next time, it may be a spin
    thread->places = 0;
    return;
  }
  const std::uint64_t page = address & ~(kPage - 1);
  Protect(page, kPage, protection);
  thread->open_page[thread->open_pages++] = page;
  if (!thread->stepping) {
    PollRecord& record = thread->pending;
    std::uint32_t size =
        MemoryOperandSize(reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]));
    Touch(thread, address, std::max(size, 1u), registers);
    if (size == 0) {
      size = 8;
      address &= ~std::uint64_t{7};
    }
    if (address + size > page + kPage) size = static_cast<std::uint32_t>(page + kPage - address);
    record.pc = static_cast<std::uint64_t>(registers[REG_RIP]);
    record.address = address;
    record.size = size;
    ReadBytes(address, size,
              record.seen);  // before the instruction: too old is safe, too new is not
    HashState(thread, registers, record.state);
    thread->pending_write = (registers[REG_ERR] & 2) != 0;
    thread->stepping = true;
  } else {
    Touch(thread, address, 1, registers);
  }
  registers[REG_EFL] |= kTrapFlag;
}

// Hands a signal that is not ours to whoever would have had it.
void PassOn(int signal, siginfo_t* info, void* context) {
  const struct sigaction& action = g_user_action[signal];
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
    struct sigaction standard{};
    standard.sa_handler = SIG_DFL;
    ALLRANKS_REAL(sigaction)(signal, &standard, nullptr);
    // A fault happens again by itself; a trap or a signal sent by kill does not.
    if (signal == SIGTRAP || info->si_code <= 0) {
      RawSyscall(SYS_tgkill, RawSyscall(SYS_getpid), RawSyscall(SYS_gettid), signal);
    }
  } else {
    action.sa_handler(signal);
  }
}

void OnFault(int signal, siginfo_t* info, void* raw) {
  const int saved_errno = errno;
  auto* context = static_cast<ucontext_t*>(raw);
  const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
  if (info->si_code > 0 && IsHeld(address)) {
    while (IsHeld(address)) RawSyscall(SYS_sched_yield);
    errno = saved_errno;
    return;
  }
  const Mapping mapping = MappingOf(address);
  const bool write = (context->uc_mcontext.gregs[REG_ERR] & 2) != 0;
  // An access that the program has no right to is its own fault.
  if (info->si_code <= 0 || mapping.size == 0 ||
      (mapping.protection & (write ? PROT_WRITE : PROT_READ)) == 0) {
    errno = saved_errno;
    PassOn(signal, info, raw);
    return;
  }
  Thread* thread = Self();
  if (thread == nullptr || !g_closed.load(std::memory_order_relaxed) || RunsNatively(thread)) {
    OpenPinnedPages();  // not a thread whose spins concern us, or another one has just opened them
  } else {
    BeginStep(thread, address, mapping.protection, context);
  }
  errno = saved_errno;
}

void OnTrap(int signal, siginfo_t* info, void* raw) {
  const int saved_errno = errno;
  auto* context = static_cast<ucontext_t*>(raw);
  if (info->si_code != TRAP_TRACE) {
    PassOn(signal, info, raw);
    return;
  }
  context->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
  Thread* thread = Self();
  // Not stepping: a handler of the program's ran in between and had a step of its own.
  if (thread == nullptr || !thread->stepping) return;
  thread->stepping = false;
  const int open_pages = thread->open_pages;
  thread->open_pages = 0;
  {
    MappingLock lock;
    if (g_closed.load(std::memory_order_relaxed)) {
      for (int i = 0; i < open_pages; ++i) Protect(thread->open_page[i], kPage, PROT_NONE);
    }
  }
  FinishStep(thread);
  errno = saved_errno;
}

void InstallHandlers() {
  if (g_handlers.exchange(true)) return;
  struct sigaction action{};
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  action.sa_sigaction = OnFault;
  ALLRANKS_REAL(sigaction)(SIGSEGV, &action, &g_user_action[SIGSEGV]);
  action.sa_sigaction = OnTrap;
  ALLRANKS_REAL(sigaction)(SIGTRAP, &action, &g_user_action[SIGTRAP]);
}

bool IsOurSignal(int signal) {
  return (signal == SIGSEGV || signal == SIGTRAP) && g_handlers.load(std::memory_order_relaxed);
}

// A thread that blocks the fault would be killed by it.
const sigset_t* WithoutOurs(const sigset_t* set, sigset_t* copy) {
  if (set == nullptr || !g_handlers.load(std::memory_order_relaxed)) return set;
  *copy = *set;
  sigdelset(copy, SIGSEGV);
  sigdelset(copy, SIGTRAP);
  return copy;
}

}  // namespace

constinit std::atomic<int> g_patience_ms{1};

std::uint64_t Alias(std::uint64_t address) {
  MappingLock lock;
  const int count = g_mapping_count.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t offset = address - g_mappings[i].address;
    if (offset < g_mappings[i].size) return g_mappings[i].alias + offset;
  }
  return 0;
}

void ClosePinnedPages() {
  if (g_closed.load(std::memory_order_relaxed) && !g_loose.load(std::memory_order_relaxed)) return;
  if (g_mapping_count.load(std::memory_order_relaxed) == 0) return;
  MappingLock lock;
  const bool loose = g_loose.exchange(false);
  if (g_closed.exchange(true) && !loose) return;
  const int count = g_mapping_count.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) CloseBody(g_mappings[i]);
}

void OpenPinnedPages() {
  if (!g_closed.load(std::memory_order_relaxed)) return;
  MappingLock lock;
  if (!g_closed.exchange(false)) return;
  g_loose.store(false, std::memory_order_relaxed);
  g_edges_closed.store(false, std::memory_order_relaxed);
  const int count = g_mapping_count.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    Protect(g_mappings[i].address, g_mappings[i].size, g_mappings[i].protection);
  }
}

bool PinnedPagesClosed() { return g_closed.load(std::memory_order_relaxed); }

void OpenPinnedPagesAt(std::uint64_t begin, std::uint64_t size) {
  if (!g_closed.load(std::memory_order_relaxed)) return;
  bool pinned = false;
  {
    MappingLock lock;
    const int count = g_mapping_count.load(std::memory_order_relaxed);
    for (int i = 0; i < count && !pinned; ++i) {
      const Mapping& mapping = g_mappings[i];
      pinned = begin < mapping.address + mapping.size &&
               (mapping.address < begin || mapping.address - begin < size);
    }
  }
  if (pinned) OpenPinnedPages();
}

void MakePinnedPrivate() {
  const int count = g_mapping_count.exchange(0);
  g_helper.store(false);
  g_closed.store(false);
  g_loose.store(false);
  g_edges_closed.store(false);
  for (int i = 0; i < count; ++i) {
    const Mapping& mapping = g_mappings[i];
    const auto size = static_cast<long>(mapping.size);
    const long copy =
        RawSyscall(SYS_mmap, static_cast<long>(mapping.address), size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (copy > 0) {
      memcpy(reinterpret_cast<void*>(copy), reinterpret_cast<const void*>(mapping.alias),
             mapping.size);
    }
    RawSyscall(SYS_munmap, static_cast<long>(mapping.alias), size);
  }
}

bool AddMapping(const Mapping& mapping) {
  {
    MappingLock lock;
    const int count = g_mapping_count.load(std::memory_order_relaxed);
    if (count == kMaxMappings) return false;
    g_mappings[count] = mapping;
    g_mapping_count.store(count + 1, std::memory_order_relaxed);
    if (g_closed.load(std::memory_order_relaxed)) CloseBody(mapping);
  }
  PrepareForFaults();
  return true;
}

Mapping TakeMapping(std::uint64_t address) {
  MappingLock lock;
  const int count = g_mapping_count.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    if (g_mappings[i].address != address) continue;
    const Mapping found = g_mappings[i];
    g_mappings[i] = g_mappings[count - 1];
    g_mapping_count.store(count - 1, std::memory_order_relaxed);
    return found;
  }
  return {};
}

void ProtectMapping(std::uint64_t address, int protection) {
  MappingLock lock;
  const int count = g_mapping_count.load(std::memory_order_relaxed);
  for (int i = 0; i < count; ++i) {
    Mapping& mapping = g_mappings[i];
    if (mapping.address != address) continue;
    mapping.protection = protection;
    if (g_closed.load(std::memory_order_relaxed)) {
      CloseBody(mapping);  // it may have been opened for bulk accesses
    } else {
      Protect(address, mapping.size, protection);
    }
  }
}

void PrepareForFaults() {
  InstallHandlers();
  StartHelper();
}

HeldWriters::HeldWriters(std::uint64_t address, std::uint64_t size) {
  g_held_begin.store(address, std::memory_order_release);
  g_held_end.store(address + size, std::memory_order_release);
  Protect(address, size, PROT_READ);
}

// The end first, so that the range in between is empty and not another.
HeldWriters::~HeldWriters() { g_held_end.store(0, std::memory_order_release); }

}  // namespace allranks::shim

namespace shim = allranks::shim;

ALLRANKS_INTERPOSE int sigaction(int signal, const struct sigaction* action,
                                 struct sigaction* old) noexcept {
  if (!shim::IsOurSignal(signal)) return ALLRANKS_REAL(sigaction)(signal, action, old);
  const struct sigaction before = shim::g_user_action[signal];
  if (action != nullptr) shim::g_user_action[signal] = *action;
  if (old != nullptr) *old = before;
  return 0;
}

ALLRANKS_INTERPOSE sighandler_t signal(int number, sighandler_t handler) noexcept {
  if (!shim::IsOurSignal(number)) return ALLRANKS_REAL(signal)(number, handler);
  const struct sigaction before = shim::g_user_action[number];
  struct sigaction action{};
  action.sa_handler = handler;
  shim::g_user_action[number] = action;
  return before.sa_handler;
}

ALLRANKS_INTERPOSE int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  sigset_t copy;
  if (how != SIG_UNBLOCK) set = shim::WithoutOurs(set, &copy);
  return ALLRANKS_REAL(sigprocmask)(how, set, old);
}

ALLRANKS_INTERPOSE int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  sigset_t copy;
  if (how != SIG_UNBLOCK) set = shim::WithoutOurs(set, &copy);
  return ALLRANKS_REAL(pthread_sigmask)(how, set, old);
}
