// The process's pinned mappings, and how a host thread that spins on them is found (pinned.cpp has
// the theory of operation).
#pragma once

#include <sys/mman.h>

#include <cstdint>

namespace allranks::shim {

// Takes access to every mapping away, so that spins are found; gives it back, for the rest of the
// thread's segment. Safe in signal handlers.
void ClosePinnedPages();
void OpenPinnedPages();
bool PinnedPagesClosed();
// For memory that the kernel is about to use in a call: to it a closed page is an error.
void OpenPinnedPagesAt(std::uint64_t begin, std::uint64_t size);
template <class T>
void OpenPinnedPagesAt(T* begin, std::uint64_t size) {
  OpenPinnedPagesAt(reinterpret_cast<std::uint64_t>(begin), size);
}

// Whether a thread of the process has been found polling. From then on the pages are closed without
// device work, too, while there are other threads: they may be what the poll waits for.
bool HasPoller();

// In a forked child: every mapping becomes an ordinary private copy.
void MakePinnedPrivate();

// Memory of the node's in this process.
struct Mapping {
  std::uint64_t address = 0, size = 0;
  std::uint64_t alias = 0;  // a second mapping of the same memory, never closed, for the handlers
  // Bytes at either end that share their page with other things (registered.cpp).
  std::uint64_t head = 0, tail = 0;
  int protection = PROT_READ | PROT_WRITE;  // while it is open
};
// False if there are too many.
bool AddMapping(const Mapping& mapping);
// Forgets the mapping at `address` and returns it; of size 0 if there is none.
Mapping TakeMapping(std::uint64_t address);
// Changes what the program may do with the mapping at `address`.
void ProtectMapping(std::uint64_t address, int protection);
// The handlers and the helper thread are there from now on.
void PrepareForFaults();

// While one lives, whoever stores to these pages waits. They can be read. One at a time.
class HeldWriters {
 public:
  HeldWriters(std::uint64_t address, std::uint64_t size);
  ~HeldWriters();
  HeldWriters(const HeldWriters&) = delete;
  HeldWriters& operator=(const HeldWriters&) = delete;
};

// Size of the memory operand of the instruction at `code`, 1 to 16 bytes; 0 if it is not one of
// those that compilers use to poll.
std::uint32_t MemoryOperandSize(const std::uint8_t* code);
// Whether it is a `rep movs` or `rep stos`, which moves many bytes and is no way to poll.
bool IsRepeatedMove(const std::uint8_t* code);

}  // namespace allranks::shim
