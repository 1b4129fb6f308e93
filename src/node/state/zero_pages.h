// Memory that is zero and takes room only where it is written to. The stacks of warps are wide,
// because lanes of a warp may be in any function, and few of their registers are used: to fill them
// with zeros would cost more than many kernels. Small memory is taken from the heap.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace allranks::node {

class ZeroPages {
 public:
  ZeroPages() = default;
  explicit ZeroPages(std::size_t size) : size_(size) {
    if (size == 0) return;
    void* data =
        IsMapped() ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                   : std::calloc(size, 1);
    if (data == nullptr || data == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(data);
  }
  ~ZeroPages() {
    if (data_ == nullptr) return;
    if (IsMapped()) {
      munmap(data_, size_);
    } else {
      std::free(data_);
    }
  }
  ZeroPages(ZeroPages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ZeroPages& operator=(ZeroPages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ZeroPages(const ZeroPages&) = delete;
  ZeroPages& operator=(const ZeroPages&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  static constexpr std::size_t kMapped = 65536;
  bool IsMapped() const { return size_ >= kMapped; }

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace allranks::node
