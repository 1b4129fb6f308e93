// Equal values are one object: what many threads have come to know in different ways is compared
// and joined by address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

namespace allranks::node::check {

inline std::size_t MixHash(std::size_t hash, std::size_t more) {
  hash ^= more + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  return hash * 0xbf58476d1ce4e5b9u ^ hash >> 29;
}

// T has == and `std::size_t Hash() const`.
template <class T>
class Interned {
 public:
  // The object that is equal to `value`; made if there is none.
  static std::shared_ptr<const T> Of(T value) {
    static thread_local Interned table;
    return table.Find(std::move(value));
  }

 private:
  std::shared_ptr<const T> Find(T value) {
    const std::size_t hash = value.Hash();
    const auto [begin, end] = known_.equal_range(hash);
    auto free = end;  // an entry whose object is gone
    for (auto it = begin; it != end; ++it) {
      std::shared_ptr<const T> known = it->second.lock();
      if (known == nullptr) free = it;
      if (known != nullptr && *known == value) return known;
    }
    auto made = std::make_shared<const T>(std::move(value));
    if (free != end) {
      free->second = made;
      return made;
    }
    known_.emplace(hash, made);
    if (known_.size() > limit_) {
      std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
      limit_ = 2 * known_.size() + kLeast;
    }
    return made;
  }

  static constexpr std::size_t kLeast = 4096;
  struct Same {
    std::size_t operator()(std::size_t hash) const { return hash; }
  };
  std::unordered_multimap<std::size_t, std::weak_ptr<const T>, Same> known_;
  std::size_t limit_ = kLeast;
};

}  // namespace allranks::node::check
