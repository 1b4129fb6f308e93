// ChaCha20 and SHA-256 by OpenSSL's EVP. A stream's own key is the SHA-256 of the main key and its
// name, so a name may be of any length and the cipher's counter starts at 0.
#include "judge/stream.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/sha256.h"

namespace allranks::judge {
namespace {

constexpr std::size_t kBlock = 16384;
alignas(64) constexpr std::uint8_t kZeros[kBlock] = {};

// Each part with its length before it: different parts never make the same bytes.
Key Digest(std::initializer_list<std::string_view> parts) {
  std::string bytes;
  for (const std::string_view part : parts) {
    std::uint64_t size = part.size();
    for (int i = 0; i < 8; ++i, size >>= 8) bytes.push_back(static_cast<char>(size & 0xff));
    bytes += part;
  }
  return Sha256(bytes);
}

}  // namespace

struct Stream::Cipher {
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  ~Cipher() { EVP_CIPHER_CTX_free(context); }
};

Key KeyOf(std::string_view seed, std::string_view label) {
  return Digest({"allranks seed", label, seed});
}

Key FreshKey() {
  Key key{};
  CHECK(RAND_bytes(key.data(), static_cast<int>(key.size())) == 1, "no random bytes available");
  return key;
}

Stream::Stream(const Key& key, std::string_view name) : cipher_(std::make_unique<Cipher>()) {
  const std::string_view main(reinterpret_cast<const char*>(key.data()), key.size());
  const Key own = Digest({"allranks stream", main, name});
  const std::uint8_t counter_and_nonce[16] = {};
  CHECK(cipher_->context != nullptr);
  CHECK(EVP_EncryptInit_ex(cipher_->context, EVP_chacha20(), nullptr, own.data(),
                           counter_and_nonce) == 1);
}

Stream::~Stream() = default;

void Stream::Bytes(void* to, std::size_t count) {
  auto* at = static_cast<std::uint8_t*>(to);
  const std::size_t kept = std::min(count, sizeof buffer_ - used_);
  std::memcpy(at, buffer_.data() + used_, kept);
  used_ += kept;
  at += kept;
  count -= kept;
  const auto encrypt = [&](std::uint8_t* out, std::size_t size) {
    int written = 0;
    CHECK(EVP_EncryptUpdate(cipher_->context, out, &written, kZeros, static_cast<int>(size)) == 1);
    CHECK_EQ(static_cast<std::size_t>(written), size);
  };
  while (count >= sizeof buffer_) {
    const std::size_t size = std::min(kBlock, count / sizeof buffer_ * sizeof buffer_);
    encrypt(at, size);
    at += size;
    count -= size;
  }
  if (count == 0) return;
  encrypt(buffer_.data(), sizeof buffer_);
  std::memcpy(at, buffer_.data(), count);
  used_ = count;
}

std::uint32_t Stream::Next32() {
  std::uint32_t value = 0;
  Bytes(&value, sizeof value);
  return value;
}

std::uint64_t Stream::Next64() {
  std::uint64_t value = 0;
  Bytes(&value, sizeof value);
  return value;
}

std::uint64_t Stream::Below(std::uint64_t limit) {
  if (limit == 0) return 0;
  const std::uint64_t rest = (~std::uint64_t{0} % limit + 1) % limit;  // 2^64 modulo limit
  for (;;) {
    const std::uint64_t value = Next64();
    if (value <= ~std::uint64_t{0} - rest) return value % limit;
  }
}

std::int64_t Stream::Between(std::int64_t low, std::int64_t high) {
  CHECK_LE(low, high);
  const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const std::uint64_t step = span == ~std::uint64_t{0} ? Next64() : Below(span + 1);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + step);
}

}  // namespace allranks::judge
