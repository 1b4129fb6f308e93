// How a message becomes bytes and back. Every message struct describes itself once, by
//   template <class A> void Visit(A& a) { a(first, second, ...); }
// and Writer and Reader below are the two archives that walk that description. Fields are
// little-endian and of fixed width; strings, blobs and lists carry a u32 count. Reader trusts
// nothing: it never reads beyond its bytes, never allocates more than they could fill, and refuses
// what is left over.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace allranks::wire {

static_assert(std::endian::native == std::endian::little, "the wire format is the memory's own");

using Blob = std::vector<std::byte>;

template <class T>
concept Scalar = (std::is_integral_v<T> && !std::is_same_v<T, bool>) || std::is_same_v<T, float> ||
                 std::is_same_v<T, double>;

class Writer {
 public:
  explicit Writer(Blob& out) : out_(out) {}

  template <class... Ts>
  void operator()(Ts&... fields) {
    (Field(fields), ...);
  }

 private:
  void Raw(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), bytes, bytes + size);
  }
  void Count(std::size_t count) {
    const auto narrow = static_cast<std::uint32_t>(count);
    Raw(&narrow, sizeof narrow);
  }

  template <Scalar T>
  void Field(T& value) {
    Raw(&value, sizeof value);
  }
  void Field(bool& value) { out_.push_back(value ? std::byte{1} : std::byte{0}); }
  template <class T>
    requires std::is_enum_v<T>
  void Field(T& value) {
    auto number = static_cast<std::underlying_type_t<T>>(value);
    Raw(&number, sizeof number);
  }
  void Field(std::string& value) {
    Count(value.size());
    Raw(value.data(), value.size());
  }
  void Field(Blob& value) {
    Count(value.size());
    Raw(value.data(), value.size());
  }
  template <class T>
  void Field(std::vector<T>& list) {
    Count(list.size());
    for (T& element : list) Field(element);
  }
  template <Scalar T, std::size_t N>
  void Field(std::array<T, N>& list) {
    Raw(list.data(), sizeof list);
  }
  template <class T>
    requires std::is_class_v<T>
  void Field(T& value) {
    value.Visit(*this);
  }

  Blob& out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  // False once anything was missing or malformed; fields read from then on keep their values.
  bool ok() const { return ok_; }
  bool AtEnd() const { return rest_.empty(); }
  std::span<const std::byte> rest() const { return rest_; }

  template <class... Ts>
  void operator()(Ts&... fields) {
    (Field(fields), ...);
  }

 private:
  bool Raw(void* data, std::size_t size) {
    if (!ok_ || rest_.size() < size) return ok_ = false;
    if (size != 0) std::memcpy(data, rest_.data(), size);
    rest_ = rest_.subspan(size);
    return true;
  }
  // A count of elements that take at least `least` bytes each.
  bool Count(std::uint32_t* count, std::size_t least) {
    if (!Raw(count, sizeof *count)) return false;
    if (*count > rest_.size() / least) return ok_ = false;
    return true;
  }

  template <Scalar T>
  void Field(T& value) {
    Raw(&value, sizeof value);
  }
  void Field(bool& value) {
    std::uint8_t byte = 0;
    if (!Raw(&byte, 1)) return;
    if (byte > 1) ok_ = false;
    value = byte == 1;
  }
  // An enum that is read names its last value kLast_.
  template <class T>
    requires std::is_enum_v<T>
  void Field(T& value) {
    std::underlying_type_t<T> number{};
    if (!Raw(&number, sizeof number)) return;
    if (number < 0 || number > static_cast<std::underlying_type_t<T>>(T::kLast_)) {
      ok_ = false;
      return;
    }
    value = static_cast<T>(number);
  }
  void Field(std::string& value) {
    std::uint32_t count = 0;
    if (!Count(&count, 1)) return;
    value.resize(count);
    Raw(value.data(), count);
  }
  void Field(Blob& value) {
    std::uint32_t count = 0;
    if (!Count(&count, 1)) return;
    value.assign(rest_.begin(), rest_.begin() + count);
    rest_ = rest_.subspan(count);
  }
  template <class T>
  void Field(std::vector<T>& list) {
    std::uint32_t count = 0;
    if (!Count(&count, Scalar<T> ? sizeof(T) : 1)) return;
    list.clear();
    // A struct may be far larger in memory than on the wire: it grows as it is really read.
    for (std::uint32_t i = 0; i < count && ok_; ++i) Field(list.emplace_back());
  }
  template <Scalar T, std::size_t N>
  void Field(std::array<T, N>& list) {
    Raw(list.data(), sizeof list);
  }
  template <class T>
    requires std::is_class_v<T>
  void Field(T& value) {
    value.Visit(*this);
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

// Appends `message` to `out`.
template <class T>
void EncodeTo(const T& message, Blob& out) {
  Writer writer(out);
  const_cast<T&>(message).Visit(writer);  // one Visit serves both ways; Writer only reads
}

template <class T>
Blob Encode(const T& message) {
  Blob out;
  EncodeTo(message, out);
  return out;
}

// Reads one message from the front of `bytes` and moves it on; false if malformed. Needs no Result,
// so that the shim's libraries stay free of the formatting library.
template <class T>
bool DecodeFrom(std::span<const std::byte>& bytes, T* message) {
  Reader reader(bytes);
  message->Visit(reader);
  bytes = reader.rest();
  return reader.ok();
}

// `bytes` must be exactly one message.
template <class T>
Result<T> Decode(std::span<const std::byte> bytes) {
  T message;
  if (!DecodeFrom(bytes, &message)) return Fail("malformed or truncated message");
  if (!bytes.empty()) return Fail("{} bytes left over after the message", bytes.size());
  return message;
}

}  // namespace allranks::wire
