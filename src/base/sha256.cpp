#include "base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/check.h"

namespace allranks {

struct Sha256Stream::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256Stream::Sha256Stream() : context_(std::make_unique<Context>()) {
  CHECK(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1);
}
Sha256Stream::~Sha256Stream() = default;

void Sha256Stream::Add(std::span<const std::byte> bytes) {
  CHECK(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1);
}
void Sha256Stream::Add(std::string_view bytes) { Add(std::as_bytes(std::span(bytes))); }

Sha256Digest Sha256Stream::Finish() {
  Sha256Digest digest{};
  unsigned size = 0;
  CHECK(EVP_DigestFinal_ex(context_->evp, digest.data(), &size) == 1);
  CHECK_EQ(size, digest.size());
  return digest;
}

Sha256Digest Sha256(std::span<const std::byte> bytes) {
  Sha256Stream stream;
  stream.Add(bytes);
  return stream.Finish();
}
Sha256Digest Sha256(std::string_view bytes) { return Sha256(std::as_bytes(std::span(bytes))); }

std::string Hex(const Sha256Digest& digest) {
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace allranks
