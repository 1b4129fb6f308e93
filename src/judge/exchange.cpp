#include "judge/exchange.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

// Linux 5.1; Debian's libc headers of the time do not all have it.
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace allranks::judge {
namespace {

constexpr std::uint64_t kAlign = 256;
// Large tensors are whole pages: the node maps them instead of copying them.
constexpr std::uint64_t kPage = 4096, kLarge = 1 << 20;

std::uint64_t Aligned(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

Result<MemoryFile> MemoryFile::Make(const char* name, std::size_t size, bool sealed) {
  MemoryFile made;
  made.size_ = size == 0 ? kAlign : size;
  made.fd_ = wire::Fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (made.fd_.get() < 0 || ftruncate(made.fd_.get(), static_cast<off_t>(made.size_)) != 0)
    return Fail("cannot create a memory file of {} bytes: {}", made.size_, std::strerror(errno));
  void* data = mmap(nullptr, made.size_, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd_.get(), 0);
  if (data == MAP_FAILED)
    return Fail("cannot map a memory file of {} bytes: {}", made.size_, std::strerror(errno));
  made.data_ = static_cast<std::byte*>(data);
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (sealed ? F_SEAL_FUTURE_WRITE : 0);
  if (fcntl(made.fd_.get(), F_ADD_SEALS, seals) != 0)
    return Fail("cannot seal a memory file: {}", std::strerror(errno));
  return made;
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MemoryFile::~MemoryFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

void MemoryFile::Clear() const {
  fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size_));
}

Placement Place(const problem::Problem& problem, const problem::Case& one, std::uint32_t calls) {
  Placement placement;
  const std::size_t count = std::size_t{calls} * static_cast<std::size_t>(one.world);
  placement.in.resize(count);
  placement.out.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::uint32_t t = 0; t < problem.tensors.size(); ++t) {
      const problem::Tensor& tensor = problem.tensors[t];
      if (tensor.dir == problem::Tensor::Dir::kSymmetric) continue;
      const bool in = tensor.dir == problem::Tensor::Dir::kIn;
      std::uint64_t& end = in ? placement.in_bytes : placement.out_bytes;
      const std::uint64_t bytes = problem::BytesOf(problem, tensor, one);
      if (bytes >= kLarge) end = Aligned(end, kPage);
      (in ? placement.in : placement.out)[i].push_back({t, end, bytes});
      end += Aligned(bytes, bytes >= kLarge ? kPage : kAlign);
    }
  }
  return placement;
}

}  // namespace allranks::judge
