// See pinned_spin.h.
#include "shim/host/pinned_spin.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <span>

#include "shim/host/pinned.h"
#include "wire/raw_syscall.h"

namespace allranks::shim {
namespace {

using wire::RawSyscall;

constexpr std::uint64_t kPlaceBytes = 16;
constexpr std::int64_t kReadPs = 100'000;  // a read of host memory in a loop
constexpr std::int64_t kMaxStepPs = 10'000'000'000;
constexpr int kInsist = 16;  // fixed points before a loop that was told to look again waits again
constexpr std::int64_t kDoubtNs = 50'000'000;         // CPU time: millions of rounds
constexpr std::int64_t kDoubtWallNs = 5'000'000'000;  // even if a hundred threads share a CPU

void Mix(std::uint64_t hash[2], std::uint64_t word) {
  hash[0] = (hash[0] ^ word) * 0x9e3779b97f4a7c15ull;
  hash[0] ^= hash[0] >> 29;
  hash[1] = (hash[1] + word) * 0xc2b2ae3d27d4eb4full;
  hash[1] ^= hash[1] >> 31;
}

// -1: there is no such clock (any more).
std::int64_t ClockNs(int clock) {
  timespec time{};
  if (RawSyscall(SYS_clock_gettime, clock, reinterpret_cast<long>(&time)) != 0) return -1;
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

std::int64_t CpuNs(int tid) {
  // The kernel's number for the CPU clock of a thread of this process.
  return ClockNs(static_cast<int>((~static_cast<unsigned>(tid) << 3) | 6u));
}

bool IsSame(const PollRecord& a, const PollRecord& b) {
  return a.state[0] == b.state[0] && a.state[1] == b.state[1] && a.address == b.address &&
         a.seen[0] == b.seen[0] && a.seen[1] == b.seen[1];
}

// `timeout` < 0: none.
wire::HostPollReply SendHostPoll(Thread* thread, const PollRecord* first, const PollRecord* last,
                                 std::int64_t timeout) {
  Inside inside;
  // By hand into reserved memory: nothing may be allocated in a handler. Each record is at most
  // four watches of 20 bytes.
  BeginRequest(thread);
  wire::Writer writer(thread->send);
  const std::size_t count_at = thread->send.size();
  std::uint32_t count = 0;
  writer(count);
  for (const PollRecord* record = first; record != last; ++record) {
    bool known = false;
    for (const PollRecord* other = first; other != record; ++other) {
      known = known || (other->address == record->address && other->size == record->size);
    }
    if (known) continue;
    for (std::uint32_t part = 0, size; part < record->size; part += size) {
      size = std::bit_floor(std::min(record->size - part, 8u));
      std::uint64_t seen = 0;
      memcpy(&seen, reinterpret_cast<const char*>(record->seen) + part, size);
      wire::HostPoll::Watch watch;
      watch.address = record->address + part;
      watch.size = size;
      watch.seen = seen;
      watch.Visit(writer);
      ++count;
    }
  }
  memcpy(thread->send.data() + count_at, &count, sizeof count);
  writer(timeout);
  std::span<const std::byte> body;
  wire::HostPollReply reply;
  if (Exchange(thread, wire::Op::kHostPoll, {}, {}, &body, nullptr) != 0 ||
      !wire::DecodeFrom(body, &reply)) {
    reply.changed = true;
  }
  return reply;
}

// The node would report a deadlock otherwise.
void RunFreely(Thread* thread) {
  const std::int64_t cpu = CpuNs(thread->tid.load(std::memory_order_relaxed));
  if (cpu < 0) return;
  thread->native_wall_until.store(ClockNs(CLOCK_MONOTONIC) + kDoubtWallNs,
                                  std::memory_order_relaxed);
  thread->native_until.store(cpu + kDoubtNs, std::memory_order_release);
  OpenPinnedPages();
}

// The same state has been before. What the state does not hold (static variables, the heap) may
// still end the loop, so the node may ask to look again; only a loop that does not leave when it
// runs freely counts as stuck.
void WaitAtFixedPoint(Thread* thread, const PollRecord* first, const PollRecord* last) {
  thread->faults = 0;
  if (thread->insist > 0) {
    --thread->insist;
    return;
  }
  g_patience_ms.store(1, std::memory_order_relaxed);
  const wire::HostPollReply reply = SendHostPoll(thread, first, last, -1);
  if (!reply.changed) thread->insist = kInsist;
  if (reply.doubt) RunFreely(thread);
}

// A loop that counts its rounds never has the same state twice. It is told by its reads alone: a
// full record of few places, each read again and again with the same result.
bool IsCountingLoop(const PollRecord* records) {
  int distinct = 0;
  for (int i = 0; i < kPollRecords; ++i) {
    int same = 0;
    bool first = true;
    for (int j = 0; j < kPollRecords; ++j) {
      if (records[j].pc != records[i].pc || records[j].address != records[i].address) continue;
      if (records[j].seen[0] != records[i].seen[0] || records[j].seen[1] != records[i].seen[1]) {
        return false;
      }
      ++same;
      first = first && j >= i;
    }
    if (same < 4) return false;
    if (first) ++distinct;
  }
  return distinct <= kPollRecords / 4;
}

// Waits as long as those reads would have taken, or an eighth of what the loop has waited already,
// whichever is longer; so a long wait costs few messages and a loop that gives up after so many
// rounds does so in the end.
void PollForAWhile(Thread* thread) {
  if (thread->poll_sequence != thread->sequence) thread->poll_waited = 0;
  const std::int64_t step = std::clamp(thread->poll_waited / 8, kPollRecords * kReadPs, kMaxStepPs);
  const std::int64_t before = thread->clock;
  const wire::HostPollReply reply =
      SendHostPoll(thread, thread->records, thread->records + kPollRecords, step);
  thread->poll_waited += thread->clock - before;
  thread->poll_sequence = thread->sequence;
  g_patience_ms.store(1, std::memory_order_relaxed);
  thread->faults = 0;
  if (reply.doubt) RunFreely(thread);
}

}  // namespace

void HashState(const Thread* thread, const greg_t* registers, std::uint64_t hash[2]) {
  hash[0] = 1;
  hash[1] = 2;
  for (int i = REG_R8; i <= REG_RIP; ++i) Mix(hash, static_cast<std::uint64_t>(registers[i]));
  Mix(hash, static_cast<std::uint64_t>(registers[REG_EFL] & ~kTrapFlag));
  Mix(hash, static_cast<std::uint64_t>(thread->local));
  const auto stack = static_cast<std::uintptr_t>(registers[REG_RSP]) & ~std::uintptr_t{7};
  std::uintptr_t end = stack + 1024;
  const std::uintptr_t next_page = (stack & ~(kPage - 1)) + kPage;
  if (end > next_page) {  // the stack may end there
    unsigned char resident;
    if (RawSyscall(SYS_mincore, static_cast<long>(next_page), kPage,
                   reinterpret_cast<long>(&resident)) != 0) {
      end = next_page;
    }
  }
  for (std::uintptr_t word = stack - 128; word < end; word += 8) {
    Mix(hash, *reinterpret_cast<const volatile std::uint64_t*>(word));
  }
}

void ReadBytes(std::uint64_t address, std::uint32_t size, std::uint64_t out[2]) {
  out[0] = out[1] = 0;
  const std::uint64_t alias = Alias(address);
  if (alias != 0) memcpy(out, reinterpret_cast<const void*>(alias), size);
}

void FinishStep(Thread* thread) {
  PollRecord& now = thread->pending;
  if (!NodeBusy()) {  // only what it touches was wanted: nobody will change it
    thread->polls = 0;
    return;
  }
  if (thread->pending_write) {
    std::uint64_t after[2];
    ReadBytes(now.address, now.size, after);
    // A store of what was there already (a failed compare-and-swap) changes nothing.
    if (after[0] != now.seen[0] || after[1] != now.seen[1]) {
      thread->polls = 0;
      return;
    }
  }
  for (int i = thread->polls - 1; i >= 0; --i) {
    if (!IsSame(thread->records[i], now)) continue;
    // Whatever else the loop reads must be the same in two rounds: a counter outside the state
    // shows in an address. Rounds too long for that are taken as they are.
    const PollRecord* round = thread->records + i;
    const int period = thread->polls - i;
    if (period <= kPollRecords / 2 &&
        (i < period || !std::equal(round, round + period, round - period, IsSame))) {
      continue;
    }
    thread->polls = 0;
    WaitAtFixedPoint(thread, round, round + period);
    return;
  }
  thread->records[thread->polls++] = now;
  if (thread->polls == kPollRecords) {
    thread->polls = 0;
    if (IsCountingLoop(thread->records)) PollForAWhile(thread);
  }
}

bool RunsNatively(const Thread* thread) {
  const std::int64_t until = thread->native_until.load(std::memory_order_acquire);
  if (until == 0) return false;
  const std::int64_t wall = ClockNs(CLOCK_MONOTONIC);
  if (wall < 0 || wall >= thread->native_wall_until.load(std::memory_order_relaxed)) return false;
  const std::int64_t cpu = CpuNs(thread->tid.load(std::memory_order_relaxed));
  return cpu >= 0 && cpu < until;
}

bool IsManyPlaces(Thread* thread, std::uint64_t address) {
  const std::uint64_t place = address / kPlaceBytes;
  for (int i = 0; i < thread->places; ++i) {
    if (thread->place[i] == place) return false;
  }
  if (thread->places == kPollPlaces) return true;
  thread->place[thread->places++] = place;
  return false;
}

}  // namespace allranks::shim
