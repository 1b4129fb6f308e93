// cudaHostRegister: memory that the program has already becomes memory that the node sees, by
// putting a memory file of the node under its pages.
//
// The pages are replaced while other threads may be writing to them, so writers are held: the pages
// are made read-only, a store faults and waits in the handler (pinned.cpp) until the new pages are
// there with everything that was stored before. Pages at either end that belong only in part to the
// registered memory also hold something else, mostly the heap; those are not closed while the
// device works, unless a thread falls silent.
//
// A part of a file that several processes have mapped becomes the same memory in each that
// registers it. What a mapping sees that is not registered is the file itself, which is no longer
// written.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>

#include "shim/abi.h"
#include "shim/host/pinned.h"
#include "wire/raw_syscall.h"

namespace allranks::shim {
namespace {

using wire::RawSyscall;

// One line of /proc/self/maps.
struct Area {
  std::uint64_t begin = 0, end = 0;
  bool readable = false, shared = false;
  ArFile file = {};
};

bool ParseArea(const char* line, Area* area) {
  const auto number = [&](std::uint64_t* value) {
    *value = 0;
    for (;; ++line) {
      const char c = *line;
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
      if (digit < 0) return;
      *value = *value * 16 + static_cast<std::uint64_t>(digit);
    }
  };
  number(&area->begin);
  if (*line++ != '-') return false;
  number(&area->end);
  if (*line++ != ' ' || strlen(line) < 4) return false;
  area->readable = line[0] == 'r';
  area->shared = line[3] == 's';
  line += 4;
  if (*line++ != ' ') return false;
  number(&area->file.offset);
  if (*line++ != ' ') return false;
  std::uint64_t major, minor;
  number(&major);
  if (*line++ != ':') return false;
  number(&minor);
  area->file.device = major << 32 | minor;
  if (*line++ != ' ') return false;
  area->file.inode = 0;
  for (; *line >= '0' && *line <= '9'; ++line)
    area->file.inode = area->file.inode * 10 + static_cast<std::uint64_t>(*line - '0');
  return true;
}

template <class F>
void ForEachArea(F visit) {
  const long fd = RawSyscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/maps"),
                             O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char buffer[4096], line[128];
  std::size_t length = 0;
  for (;;) {
    const long got = RawSyscall(SYS_read, fd, reinterpret_cast<long>(buffer), sizeof buffer);
    if (got == -EINTR) continue;
    if (got <= 0) break;
    for (long i = 0; i < got; ++i) {
      if (buffer[i] != '\n') {
        if (length + 1 < sizeof line) line[length++] = buffer[i];
        continue;
      }
      line[length] = '\0';
      length = 0;
      Area area;
      if (ParseArea(line, &area)) visit(area);
    }
  }
  RawSyscall(SYS_close, fd);
}

long Map(long at, std::uint64_t size, int protection, int flags, int fd) {
  return RawSyscall(SYS_mmap, at, static_cast<long>(size), protection, flags, fd, 0);
}

void Unmap(long at, std::uint64_t size) { RawSyscall(SYS_munmap, at, static_cast<long>(size)); }

}  // namespace
}  // namespace allranks::shim

using namespace allranks::shim;
using allranks::wire::RawSyscall;

int ar_host_pages(std::uint64_t address, std::uint64_t size, ArFile* file) {
  // The stack of this very call cannot be read-only.
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  if (here - address < size) return kArPagesOther;
  std::uint64_t reached = address;
  bool shared = false, whole = false;
  ForEachArea([&](const Area& area) {
    if (area.end <= reached || area.begin > reached || reached >= address + size) return;
    if (!area.readable) return;
    shared = shared || area.shared;
    if (reached == address && area.end - address >= size) {
      whole = true;
      *file = area.file;
      file->offset += address - area.begin;
    }
    reached = area.end;
  });
  if (reached < address + size) return kArPagesMissing;
  if (!shared) return kArPagesPrivate;
  return whole ? kArPagesShared : kArPagesOther;
}

bool ar_register_pages(std::uint64_t address, std::uint64_t size, std::uint64_t head,
                       std::uint64_t tail, bool fill, int fd) {
  const auto where = static_cast<long>(address);
  const long alias = Map(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
  if (alias <= 0) {
    RawSyscall(SYS_close, fd);
    return false;
  }
  PrepareForFaults();
  bool good;
  {
    HeldWriters held(address, size);
    if (fill) memcpy(reinterpret_cast<void*>(alias), reinterpret_cast<const void*>(address), size);
    good = Map(where, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd) == where;
  }
  RawSyscall(SYS_close, fd);
  RawSyscall(SYS_mprotect, alias, static_cast<long>(size), PROT_READ);
  if (good && AddMapping({.address = address,
                          .size = size,
                          .alias = static_cast<std::uint64_t>(alias),
                          .head = head,
                          .tail = tail})) {
    return true;
  }
  Unmap(alias, size);
  return false;
}

void ar_unregister_pages(std::uint64_t address, bool shared) {
  const Mapping mapping = TakeMapping(address);
  if (mapping.size == 0) return;
  const long copy =
      shared ? 0 : Map(0, mapping.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (copy > 0) {
    HeldWriters held(address, mapping.size);
    memcpy(reinterpret_cast<void*>(copy), reinterpret_cast<const void*>(mapping.alias),
           mapping.size);
    RawSyscall(SYS_mremap, copy, static_cast<long>(mapping.size), static_cast<long>(mapping.size),
               MREMAP_MAYMOVE | MREMAP_FIXED, static_cast<long>(address));
  } else {  // where no memory was left for a copy, only a fork could tell
    RawSyscall(SYS_mprotect, static_cast<long>(address), static_cast<long>(mapping.size),
               PROT_READ | PROT_WRITE);
  }
  Unmap(static_cast<long>(mapping.alias), mapping.size);
}
