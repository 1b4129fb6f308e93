// Maps pinned memory into the process and out of it: what the driver library asks for. pinned.cpp
// watches the pages.
#include <sys/mman.h>
#include <sys/syscall.h>

#include "shim/abi.h"
#include "shim/host/pinned.h"
#include "wire/raw_syscall.h"

namespace shim = allranks::shim;
using allranks::wire::RawSyscall;

bool ar_map_pinned(std::uint64_t address, std::uint64_t size, int fd) {
  const auto where = static_cast<long>(address), bytes = static_cast<long>(size);
  const long mapped = RawSyscall(SYS_mmap, where, bytes, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
  const long alias = RawSyscall(SYS_mmap, 0, bytes, PROT_READ, MAP_SHARED, fd, 0);
  RawSyscall(SYS_close, fd);
  if (mapped == where && alias > 0 &&  // a kernel before 4.17 ignores the flag
      shim::AddMapping(
          {.address = address, .size = size, .alias = static_cast<std::uint64_t>(alias)})) {
    return true;
  }
  if (mapped > 0) RawSyscall(SYS_munmap, mapped, bytes);
  if (alias > 0) RawSyscall(SYS_munmap, alias, bytes);
  return false;
}

void ar_unmap_pinned(std::uint64_t address) {
  const shim::Mapping found = shim::TakeMapping(address);
  if (found.size == 0) return;
  RawSyscall(SYS_munmap, static_cast<long>(found.address), static_cast<long>(found.size));
  RawSyscall(SYS_munmap, static_cast<long>(found.alias), static_cast<long>(found.size));
}

void ar_protect_pinned(std::uint64_t address, bool read, bool write) {
  shim::ProtectMapping(address, (read ? PROT_READ : 0) | (write ? PROT_WRITE : 0));
}

void ar_open_pinned() { shim::OpenPinnedPages(); }
