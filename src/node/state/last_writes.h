// Who wrote a word last, as far as strong stores and atomics of kernels go: for reports of who
// waits for what. A table of fixed size in which a later write replaces an earlier one of the same
// place in it: what it says is true, but it may have forgotten.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include "node/code/code.h"
#include "node/ids.h"
#include "node/time.h"

namespace allranks::node {

class LastWrites {
 public:
  struct Write {
    std::uint32_t object = 0, size = 0;  // object: its id; size 0: none
    std::uint64_t offset = 0, value = 0;
    std::uint64_t number = 0;  // in the order of writes
    const Code* code = nullptr;
    std::uint32_t pc = 0;
    int device = 0;
    OpId op = 0;  // the launch's
    Time time = 0;
  };

  void Note(std::uint32_t object, std::uint64_t offset, const std::byte* value, std::uint32_t size,
            const std::shared_ptr<const Code>& code, std::uint32_t pc, int device, OpId op,
            Time time) {
    if (table_.empty()) table_.resize(kEntries);
    if (code.get() != last_) {
      last_ = code.get();
      codes_.emplace(last_, code);
    }
    Write write{object, size, offset, 0, ++writes_, last_, pc, device, op, time};
    std::memcpy(&write.value, value, std::min<std::size_t>(size, sizeof write.value));
    table_[Index(object, offset / 4)] = write;
  }

  // The last one known to these bytes, or null.
  const Write* Find(std::uint32_t object, std::uint64_t offset, std::uint32_t size) const {
    const Write* found = nullptr;
    if (table_.empty()) return found;
    // A write is noted at its first word, and may begin before these bytes.
    const std::uint64_t first = offset / 4 - std::min(offset / 4, kMostWords - 1);
    for (std::uint64_t at = first; at * 4 < offset + size; ++at) {
      const Write& write = table_[Index(object, at)];
      if (write.size == 0 || write.object != object || write.offset >= offset + size ||
          offset >= write.offset + write.size) {
        continue;
      }
      if (found == nullptr || found->number < write.number) found = &write;
    }
    return found;
  }

 private:
  static constexpr std::uint64_t kMostWords = 8;  // of a write
  static constexpr std::size_t kEntries = std::size_t{1} << 16;
  static std::size_t Index(std::uint32_t object, std::uint64_t word) {
    return ((word ^ std::uint64_t{object} << 40) * 0x9e3779b97f4a7c15) >> 48;
  }

  std::vector<Write> table_;
  std::uint64_t writes_ = 0;
  const Code* last_ = nullptr;
  std::unordered_map<const Code*, std::shared_ptr<const Code>> codes_;  // of all writes
};

}  // namespace allranks::node
