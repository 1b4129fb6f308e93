// Equal values are one object: what many threads have come to know in different ways is compared
// and joined by address.
//
// A machine runs in one thread, so references are counted without atomics: a checked run makes and
// drops millions. An object that nobody refers to leaves its table at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace allranks::node::check {

inline std::size_t MixHash(std::size_t hash, std::size_t more) {
  hash ^= more + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  return hash * 0xbf58476d1ce4e5b9u ^ hash >> 29;
}

// The base of what is interned. A copy is a value of its own, to which nobody refers.
class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) {}
  Counted& operator=(const Counted&) { return *this; }
  bool operator==(const Counted&) const { return true; }

 private:
  template <class T>
  friend class Ref;
  mutable std::uint32_t references_ = 0;
};

// Refers to an interned object. T has `static void Free(const T*)`, which is called with one that
// nobody refers to any more.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as other pointers have it
  explicit Ref(const T* object) : object_(object) {
    if (object_ != nullptr) ++object_->references_;
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class Derived>
    requires std::is_base_of_v<T, Derived>
  Ref(const Ref<Derived>& other) : Ref(other.get()) {}  // NOLINT(google-explicit-constructor)
  ~Ref() {
    if (object_ != nullptr && --object_->references_ == 0) T::Free(object_);
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  const T* get() const { return object_; }
  const T& operator*() const { return *object_; }
  const T* operator->() const { return object_; }
  bool operator==(const Ref& other) const { return object_ == other.object_; }
  bool operator==(std::nullptr_t) const { return object_ == nullptr; }
  bool operator<(const Ref& other) const { return std::less<>()(object_, other.object_); }

 private:
  const T* object_ = nullptr;
};

// T is Counted, has == and `std::size_t Hash() const`.
template <class T>
class Interned {
 public:
  // The object that is equal to `value`; made if there is none.
  static Ref<T> Of(T value) {
    static thread_local const Owner kOwner;
    return Ref<T>(kOwner.table->Find(std::move(value)));
  }

  static void Drop(const T* object) {
    const auto* entry = static_cast<const Entry*>(object);
    Interned* table = entry->table;
    table->Remove(*entry);
    const bool last = table->orphan_ && table->count_ == 0;
    delete entry;
    if (last) delete table;
  }

 private:
  struct Entry : T {
    Entry(T value, std::size_t of, Interned* in) : T(std::move(value)), hash(of), table(in) {}
    std::size_t hash;
    mutable const Entry* next = nullptr;
    Interned* table;
  };
  // The thread's table. Objects may outlive the thread: then the last of them ends the table.
  struct Owner {
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    ~Owner() {
      if (table->count_ == 0) {
        delete table;
      } else {
        table->orphan_ = true;
      }
    }
    Interned* table = new Interned;
  };

  const Entry*& Bucket(std::size_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }

  const Entry* Find(T value) {
    const std::size_t hash = value.Hash();
    for (const Entry* entry = Bucket(hash); entry != nullptr; entry = entry->next)
      if (entry->hash == hash && static_cast<const T&>(*entry) == value) return entry;
    if (++count_ > buckets_.size()) Grow();
    const Entry*& bucket = Bucket(hash);
    auto* made = new Entry(std::move(value), hash, this);
    made->next = bucket;
    bucket = made;
    return made;
  }

  void Remove(const Entry& gone) {
    const Entry** place = &Bucket(gone.hash);
    while (*place != &gone) place = &(*place)->next;
    *place = gone.next;
    --count_;
  }

  void Grow() {
    std::vector<const Entry*> before(buckets_.size() * 2);
    before.swap(buckets_);
    for (const Entry* entry : before) {
      while (entry != nullptr) {
        const Entry* next = entry->next;
        const Entry*& bucket = Bucket(entry->hash);
        entry->next = bucket;
        bucket = entry;
        entry = next;
      }
    }
  }

  std::vector<const Entry*> buckets_ = std::vector<const Entry*>(4096);  // a power of two
  std::size_t count_ = 0;
  bool orphan_ = false;
};

}  // namespace allranks::node::check

template <class T>
struct std::hash<allranks::node::check::Ref<T>> {
  std::size_t operator()(const allranks::node::check::Ref<T>& ref) const {
    // Objects lie sixteen bytes apart at least.
    return reinterpret_cast<std::uintptr_t>(ref.get()) >> 4;
  }
};
