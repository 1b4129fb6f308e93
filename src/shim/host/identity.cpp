// Who a process is: its rank as launchers tell it, and the name and boot id of its simulated host.
// Programs and bootstraps decide by these who shares a machine with whom, so all processes of one
// simulated host see the same and those of another see something else: `node0`, `node1`, ...
// Such a name resolves to an address of the loopback, where the other hosts are in truth.
#include "shim/host/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "shim/host/link.h"
#include "shim/host/real.h"

namespace allranks::shim {
namespace {

constexpr char kName[] = "node";

// A number that is the whole of an environment variable, or -1.
int NumberOf(const char* name) {
  const char* text = getenv(name);
  if (text == nullptr || *text < '0' || *text > '9') return -1;
  char* end = nullptr;
  const long value = strtol(text, &end, 10);
  return *end != '\0' || value > 1'000'000 ? -1 : static_cast<int>(value);
}

// The names under which launchers say a process's rank, the number of all ranks, and the number of
// those on the same host.
constexpr const char* kLaunchers[][3] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
    {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"},
};

int WriteName(char* out, size_t size) {
  return snprintf(out, size, "%s%d", kName, SimulatedHost());
}

// A name as the system's resolver understands it: for a simulated host its address, which is one
// of the loopback's, so that whoever binds to it or connects to it is right.
class Resolvable {
 public:
  explicit Resolvable(const char* name) : name_(name) {
    if (name == nullptr || !Linked() || strncmp(name, kName, sizeof kName - 1) != 0) return;
    const char* digits = name + sizeof kName - 1;
    if (*digits < '0' || *digits > '9') return;
    char* end = nullptr;
    const long number = strtol(digits, &end, 10);
    if (*end != '\0' || number >= SimulatedHosts()) return;
    snprintf(address_, sizeof address_, "127.0.%ld.%ld", number / 250, number % 250 + 1);
    name_ = address_;
  }
  const char* get() const { return name_; }

 private:
  const char* name_;
  char address_[64];
};

// What a file says about this host, if it is one of those that do: its length, else 0.
int Contents(const char* path, char* out, size_t size) {
  if (path == nullptr || path[0] != '/' || !Linked()) return 0;
  if (strcmp(path, "/proc/sys/kernel/random/boot_id") == 0) {
    return snprintf(out, size, "a11ba9c5-0000-4000-8000-%012x\n",
                    static_cast<unsigned>(SimulatedHost()));
  }
  if (strcmp(path, "/proc/sys/kernel/hostname") == 0 || strcmp(path, "/etc/hostname") == 0) {
    return snprintf(out, size, "%s%d\n", kName, SimulatedHost());
  }
  return 0;
}

// A descriptor with that content, or -1: the file is not one of those.
int OpenVirtual(const char* path, int flags) {
  char text[64];
  const int length = Contents(path, text, sizeof text);
  if (length == 0 || (flags & O_ACCMODE) != O_RDONLY) return -1;
  const int fd = memfd_create("host", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
  if (fd < 0) return -1;
  if (pwrite(fd, text, static_cast<size_t>(length), 0) == length) return fd;
  close(fd);
  return -1;
}

}  // namespace

Placement PlacementByEnvironment() {
  Placement placement;
  placement.host = NumberOf("ALLRANKS_HOST");
  for (const auto& [rank, size, local_size] : kLaunchers) {
    placement.rank = NumberOf(rank);
    if (placement.rank < 0) continue;
    const int all = NumberOf(size), local = NumberOf(local_size);
    placement.placed = all > 0 && local > 0 && local < all;
    break;
  }
  return placement;
}

}  // namespace allranks::shim

namespace shim = allranks::shim;

ALLRANKS_INTERPOSE int gethostname(char* name, size_t size) noexcept {
  if (!shim::Linked()) return ALLRANKS_REAL(gethostname)(name, size);
  char own[32];
  const auto length = static_cast<size_t>(shim::WriteName(own, sizeof own));
  memcpy(name, own, length + 1 < size ? length + 1 : size);
  if (length + 1 <= size) return 0;
  errno = ENAMETOOLONG;
  return -1;
}

ALLRANKS_INTERPOSE int uname(utsname* name) noexcept {
  const int result = ALLRANKS_REAL(uname)(name);
  if (result == 0 && shim::Linked()) shim::WriteName(name->nodename, sizeof name->nodename);
  return result;
}

ALLRANKS_INTERPOSE int getaddrinfo(const char* __restrict node, const char* __restrict service,
                                   const addrinfo* __restrict hints, addrinfo** __restrict result) {
  return ALLRANKS_REAL(getaddrinfo)(shim::Resolvable(node).get(), service, hints, result);
}

ALLRANKS_INTERPOSE hostent* gethostbyname(const char* name) {
  return ALLRANKS_REAL(gethostbyname)(shim::Resolvable(name).get());
}

// A mode is given only if a file may be created.
#define ALLRANKS_OPEN(call)                                         \
  const int fd = shim::OpenVirtual(path, flags);                    \
  if (fd >= 0) return fd;                                           \
  mode_t mode = 0;                                                  \
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) { \
    va_list list;                                                   \
    va_start(list, flags);                                          \
    mode = va_arg(list, mode_t);                                    \
    va_end(list);                                                   \
  }                                                                 \
  return call

ALLRANKS_INTERPOSE int open(const char* path, int flags, ...) {
  ALLRANKS_OPEN(ALLRANKS_REAL(open)(path, flags, mode));
}
ALLRANKS_INTERPOSE int open64(const char* path, int flags, ...) {
  ALLRANKS_OPEN(ALLRANKS_REAL(open64)(path, flags, mode));
}
ALLRANKS_INTERPOSE int openat(int folder, const char* path, int flags, ...) {
  ALLRANKS_OPEN(ALLRANKS_REAL(openat)(folder, path, flags, mode));
}
ALLRANKS_INTERPOSE int openat64(int folder, const char* path, int flags, ...) {
  ALLRANKS_OPEN(ALLRANKS_REAL(openat64)(folder, path, flags, mode));
}

ALLRANKS_INTERPOSE FILE* fopen(const char* __restrict path, const char* __restrict mode) {
  const int fd = mode[0] == 'r' ? shim::OpenVirtual(path, O_RDONLY) : -1;
  return fd >= 0 ? fdopen(fd, mode) : ALLRANKS_REAL(fopen)(path, mode);
}
ALLRANKS_INTERPOSE FILE* fopen64(const char* __restrict path, const char* __restrict mode) {
  const int fd = mode[0] == 'r' ? shim::OpenVirtual(path, O_RDONLY) : -1;
  return fd >= 0 ? fdopen(fd, mode) : ALLRANKS_REAL(fopen64)(path, mode);
}
