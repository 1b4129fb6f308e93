// What liballranks_host.so offers to libcuda.so.1: the link to the node, and the process's pinned
// mappings. A C interface, because the two are separate shared objects that each carry their own
// copy of the C++ library. Everything else of the host library is interposition of libc and has no
// header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/messages.h"

#define ALLRANKS_EXPORT extern "C" __attribute__((visibility("default")))

// Answers of ar_call.
enum ArCall : int {
  kArOk = 0,
  kArNoNode = 1,  // not started by `allranks exec`, or the node is gone
};

struct ArReply {
  std::int32_t status;  // CUresult
  const void* body;     // the reply struct's bytes; valid until the thread's next call
  std::size_t size;
  int fd;  // a descriptor that came with it (the caller owns it), or -1
};

// One request and its reply. `head` then `tail` are the encoded request struct (two parts, so that
// bulk data behind a small struct need not be copied together). `fd` goes with it unless it is -1;
// then there is no tail.
ALLRANKS_EXPORT int ar_call(std::uint16_t op, const void* head, std::size_t head_size,
                            const void* tail, std::size_t tail_size, int fd, ArReply* reply);

// Return addresses of the caller, innermost first; 0 unless the node wants to know.
ALLRANKS_EXPORT std::size_t ar_stack(std::uint64_t* addresses, std::size_t most);

// What the program marks by NVTX: an event of the calling thread, now. `domain` and `text` may be
// cut; `kind` is a wire::RangeEvent::Kind. Takes no virtual time.
ALLRANKS_EXPORT void ar_range(int kind, std::uint64_t id, const char* domain, const char* text);

// CUDA was initialised in this process: a child made by fork from now on has no usable CUDA.
ALLRANKS_EXPORT void ar_cuda_initialised();
// True in such a child.
ALLRANKS_EXPORT bool ar_cuda_lost_by_fork();

// Maps `size` bytes of `fd` at exactly `address`; the fd is used up. False if that place is taken.
ALLRANKS_EXPORT bool ar_map_pinned(std::uint64_t address, std::uint64_t size, int fd);
ALLRANKS_EXPORT void ar_unmap_pinned(std::uint64_t address);
// What the program may do with a mapping; anything, if nothing else is said.
ALLRANKS_EXPORT void ar_protect_pinned(std::uint64_t address, bool read, bool write);
// What the pages of the program's own memory are.
enum ArPages : int {
  kArPagesPrivate = 0,
  kArPagesMissing = 1,  // not all of it is memory that can be read
  kArPagesOther = 2,    // the stack of this call, or pieces of several mappings with a shared one
  kArPagesShared = 3,   // a part of one file, shared with all others that have mapped it
};
struct ArFile {
  std::uint64_t device, inode, offset;  // where the pages begin
};
ALLRANKS_EXPORT int ar_host_pages(std::uint64_t address, std::uint64_t size, ArFile* file);
// Puts `fd` under whole pages of the program's memory, the fd is used up. `fill`: with their
// contents. `head`, `tail`: bytes at either end, 0 or a page, that hold something else as well.
ALLRANKS_EXPORT bool ar_register_pages(std::uint64_t address, std::uint64_t size,
                                       std::uint64_t head, std::uint64_t tail, bool fill, int fd);
// Makes them ordinary memory again. `shared`: they stay the same memory as those of others.
ALLRANKS_EXPORT void ar_unregister_pages(std::uint64_t address, bool shared);
// Makes pinned memory accessible to system calls, which cannot take the faults that find host
// spins.
ALLRANKS_EXPORT void ar_open_pinned();

// A named barrier among `count` ranks of the node. 0, or -1 without a node.
ALLRANKS_EXPORT int allranks_barrier(const char* name, unsigned count);

namespace allranks::shim {

// Sends `request` and the descriptor `with`, decodes the answer; a CUresult number. 999 if the node
// is gone.
template <class T>
int Call(const T& request, typename T::Reply* answer, int* fd = nullptr, int with = -1) {
  const wire::Blob bytes = wire::Encode(request);
  ArReply reply;
  const int linked = ar_call(static_cast<std::uint16_t>(wire::kOpOf<T>), bytes.data(), bytes.size(),
                             nullptr, 0, with, &reply);
  if (linked != kArOk) return 999;
  std::span<const std::byte> rest(static_cast<const std::byte*>(reply.body), reply.size);
  if (!wire::DecodeFrom(rest, answer)) return 999;
  if (fd != nullptr) *fd = reply.fd;
  return reply.status;
}

template <class T>
int Call(const T& request) {
  typename T::Reply ignored;
  return Call(request, &ignored);
}

}  // namespace allranks::shim
