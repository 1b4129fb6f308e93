// Which bytes of an object somebody has written: one bit per byte, kept for device memory and
// shared memory while a program is checked (Object::initialised). errors.h reports reads of bytes
// that nobody wrote.
//
// An object without these bits counts as written throughout: memory that hosts write unseen, module
// variables, whatever existed before checking began, and every object whose last byte has been
// written. So a program pays for the bits of a buffer until it has filled it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace allranks::node::check {

// The bits of a range on their way from one object to another.
struct InitialisedRange {
  bool whole = true;                // every byte is written, and there are no bits
  std::vector<std::uint64_t> bits;  // bit i: byte i of the range
};

// Ranges are clipped to the object.
class Initialised {
 public:
  // Nothing is written yet. The bits take memory only where they are touched. nullptr: the
  // operating system has no room for them, and nothing will be reported of the object.
  static std::shared_ptr<Initialised> Make(std::uint64_t size);

  // Every byte has been written: the object needs these bits no longer.
  bool complete() const { return missing_ == 0; }

  void Write(std::uint64_t offset, std::uint64_t size) {
    ForWords(offset, size, [&](std::uint64_t word, std::uint64_t mask) {
      const std::uint64_t fresh = mask & ~bits_[word];
      if (fresh == 0) return true;
      bits_[word] |= fresh;
      missing_ -= static_cast<std::uint64_t>(__builtin_popcountll(fresh));
      return true;
    });
  }
  // Whether all bytes of the range are written.
  bool All(std::uint64_t offset, std::uint64_t size) const {
    return ForWords(offset, size, [&](std::uint64_t word, std::uint64_t mask) {
      return (mask & ~bits_[word]) == 0;
    });
  }
  // Whether none of them is.
  bool None(std::uint64_t offset, std::uint64_t size) const {
    return ForWords(offset, size, [&](std::uint64_t word, std::uint64_t mask) {
      return (mask & bits_[word]) == 0;
    });
  }

  // What a copy takes along, and what it then leaves at its destination.
  InitialisedRange Take(std::uint64_t offset, std::uint64_t size) const;
  void Put(std::uint64_t offset, std::uint64_t size, const InitialisedRange& range);

 private:
  struct Free {
    void operator()(std::uint64_t* bits) const { std::free(bits); }
  };
  Initialised(std::uint64_t size, std::uint64_t* bits) : size_(size), missing_(size), bits_(bits) {}

  // `visit(word, mask)` for the words of a range until one says false; the last answer.
  template <class F>
  bool ForWords(std::uint64_t offset, std::uint64_t size, F visit) const {
    if (offset >= size_ || size == 0) return true;
    const std::uint64_t last = offset + std::min(size, size_ - offset) - 1;
    std::uint64_t word = offset / 64;
    std::uint64_t mask = ~std::uint64_t{0} << offset % 64;
    for (; word < last / 64; ++word, mask = ~std::uint64_t{0}) {
      if (!visit(word, mask)) return false;
    }
    return visit(word, mask & ~std::uint64_t{0} >> (63 - last % 64));
  }

  std::uint64_t size_;
  std::uint64_t missing_;
  std::unique_ptr<std::uint64_t[], Free> bits_;
};

}  // namespace allranks::node::check
