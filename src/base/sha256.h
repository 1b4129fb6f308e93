// SHA-256, by OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace allranks {

using Sha256Digest = std::array<unsigned char, 32>;

Sha256Digest Sha256(std::span<const std::byte> bytes);
Sha256Digest Sha256(std::string_view bytes);

// 64 lower-case digits.
std::string Hex(const Sha256Digest& digest);

// The same of bytes that come piece by piece.
class Sha256Stream {
 public:
  Sha256Stream();
  ~Sha256Stream();
  void Add(std::span<const std::byte> bytes);
  void Add(std::string_view bytes);
  Sha256Digest Finish();  // once, at the end

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace allranks
