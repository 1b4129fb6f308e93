// Random numbers of the judge: ChaCha20 under a key that exists only in the judge's process.
// Streams of different names are independent, and each is the same on every machine, so that a
// judgement can be repeated from its seed while a candidate can predict nothing from what it has
// seen.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/sha256.h"

namespace allranks::judge {

using Key = Sha256Digest;

// From a user's seed: SHA-256 of label and text. Different labels give independent keys.
Key KeyOf(std::string_view seed, std::string_view label);
// A key of the operating system's randomness.
Key FreshKey();

class Stream {
 public:
  // The stream called `name` under `key`.
  Stream(const Key& key, std::string_view name);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void Bytes(void* to, std::size_t count);
  std::uint32_t Next32();
  std::uint64_t Next64();
  // Uniform in [0, limit); 0 for 0. Every value is exactly as likely as every other.
  std::uint64_t Below(std::uint64_t limit);
  // Uniform in [low, high].
  std::int64_t Between(std::int64_t low, std::int64_t high);

 private:
  struct Cipher;
  std::unique_ptr<Cipher> cipher_;
  std::array<std::uint8_t, 512> buffer_;  // for small requests
  std::size_t used_ = sizeof buffer_;
};

}  // namespace allranks::judge
