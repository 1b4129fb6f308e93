// A link set: several images as one run of bytes, to be linked into one module by the node. The
// shim makes it of what a program's -rdc=true objects registered, or of what was given to cuLink;
// the node reads it, and its bytes are then as untrusted as any image's.
//
// Layout: a header {u32 magic, u32 version = 1, u64 bytes of the whole}, then per image {u64 bytes
// of the name, u64 bytes of the image}, the name, the image, each padded to a multiple of 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace allranks {

inline constexpr std::uint32_t kLinkSetMagic = 0x4b4c5241;  // "ARLK"
inline constexpr std::uint32_t kLinkSetVersion = 1;

struct LinkSetHeader {
  std::uint32_t magic = kLinkSetMagic;
  std::uint32_t version = kLinkSetVersion;
  std::uint64_t bytes = 0;
};

struct LinkSetImage {
  std::string_view name;
  std::span<const std::byte> bytes;
};

class LinkSetBuilder {
 public:
  LinkSetBuilder() { bytes_.resize(sizeof(LinkSetHeader)); }
  void Add(std::string_view name, const void* image, std::size_t size) {
    const std::uint64_t sizes[2] = {name.size(), size};
    Append(sizes, sizeof sizes);
    Append(name.data(), name.size());
    Append(image, size);
    ++count_;
  }
  std::size_t count() const { return count_; }
  // The whole; nothing may be added afterwards.
  const std::vector<char>& Finish() {
    LinkSetHeader header;
    header.bytes = bytes_.size();
    std::memcpy(bytes_.data(), &header, sizeof header);
    return bytes_;
  }

 private:
  void Append(const void* data, std::size_t size) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + (size + 7) / 8 * 8);
    if (size > 0) std::memcpy(bytes_.data() + at, data, size);
  }

  std::vector<char> bytes_;
  std::size_t count_ = 0;
};

inline bool IsLinkSet(std::span<const std::byte> bytes) {
  std::uint32_t magic = 0;
  if (bytes.size() < sizeof(LinkSetHeader)) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == kLinkSetMagic;
}

// The images of a set; false if the bytes are not one. They point into `bytes`.
inline bool ReadLinkSet(std::span<const std::byte> bytes, std::vector<LinkSetImage>* images) {
  LinkSetHeader header;
  if (!IsLinkSet(bytes)) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version != kLinkSetVersion || header.bytes != bytes.size()) return false;
  bytes = bytes.subspan(sizeof header);
  const auto take = [&](std::uint64_t size, std::span<const std::byte>* part) {
    if (size > bytes.size() || (size + 7) / 8 * 8 > bytes.size()) return false;
    *part = bytes.first(static_cast<std::size_t>(size));
    bytes = bytes.subspan(static_cast<std::size_t>((size + 7) / 8 * 8));
    return true;
  };
  images->clear();
  while (!bytes.empty()) {
    std::uint64_t sizes[2];
    std::span<const std::byte> part, name, image;
    if (!take(sizeof sizes, &part)) return false;
    std::memcpy(sizes, part.data(), sizeof sizes);
    if (!take(sizes[0], &name) || !take(sizes[1], &image)) return false;
    images->push_back({{reinterpret_cast<const char*>(name.data()), name.size()}, image});
  }
  return true;
}

}  // namespace allranks
