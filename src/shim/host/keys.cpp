// Names of locks and the count of their waiters.
#include "shim/host/keys.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "shim/host/locks.h"
#include "wire/raw_syscall.h"

namespace allranks::shim {
namespace {

using wire::Key;
using wire::RawSyscall;

// Registered waiters of this process by hash of the key: a release with nobody waiting sends
// nothing.
constexpr int kCounters = 4096;
constinit std::atomic<std::uint32_t> g_waiters[kCounters];

std::uint64_t ParseHex(const char*& text) {
  std::uint64_t value = 0;
  for (;; ++text) {
    const char c = *text;
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<std::uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = value * 16 + static_cast<std::uint64_t>(c - 'a' + 10);
    } else {
      return value;
    }
  }
}

// "start-end perms offset major:minor inode path": true if `address` lies there, and its place in
// the file.
bool PlaceInLine(const char* line, std::uint64_t address, Key* key) {
  const std::uint64_t start = ParseHex(line);
  if (*line++ != '-') return false;
  const std::uint64_t end = ParseHex(line);
  if (address < start || address >= end || strlen(line) < 6) return false;
  line += 6;  // " rwxs "
  const std::uint64_t offset = ParseHex(line);
  if (*line++ != ' ') return false;
  const std::uint64_t major = ParseHex(line);
  if (*line++ != ':') return false;
  const std::uint64_t minor = ParseHex(line);
  const std::uint64_t inode = strtoull(line, nullptr, 10);
  if (inode == 0) return false;
  key->shared = true;
  key->object = (inode * 0x9e3779b97f4a7c15ull) ^ (major << 20 | minor);
  key->where = offset + address - start;
  return true;
}

// Where shared memory really is, the same in every process that maps it.
bool PlaceInFile(std::uint64_t address, Key* key) {
  const int fd = static_cast<int>(RawSyscall(
      SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/maps"), O_RDONLY | O_CLOEXEC));
  if (fd < 0) return false;
  char buffer[4097];
  long used = 0;
  bool found = false;
  while (!found) {
    const long got = RawSyscall(SYS_read, fd, reinterpret_cast<long>(buffer + used), 4096 - used);
    if (got <= 0) break;
    used += got;
    buffer[used] = '\0';
    char* line = buffer;
    for (char* end; !found && (end = strchr(line, '\n')) != nullptr; line = end + 1) {
      *end = '\0';
      found = PlaceInLine(line, address, key);
    }
    used -= line - buffer;
    if (used >= 4096) used = 0;
    memmove(buffer, line, static_cast<std::size_t>(used));
  }
  RawSyscall(SYS_close, fd);
  return found;
}

}  // namespace

std::atomic<std::uint32_t>& Waiters(const Key& key) {
  return g_waiters[(key.where >> 2) * 0x9e3779b97f4a7c15ull >> 52];
}

Key KeyOf(const void* address, bool shared) {
  Key key;
  key.where = reinterpret_cast<std::uint64_t>(address);
  if (shared) PlaceInFile(key.where, &key);
  return key;
}

std::uint32_t Wake(const void* address, bool shared, std::uint32_t count) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  Key key;
  key.where = reinterpret_cast<std::uint64_t>(address);
  if (!shared && Waiters(key).load() == 0) return 0;
  Thread* self = Self();
  if (self == nullptr) return 0;
  if (shared) key = KeyOf(address, true);
  wire::WakeKey wake;
  wake.key = key;
  wake.count = count;
  wire::WakeKeyReply reply;
  Call(self, wake, &reply);
  return reply.woken;
}

void ForgetWaiters() {
  for (auto& counter : g_waiters) counter.store(0, std::memory_order_relaxed);
}

}  // namespace allranks::shim
