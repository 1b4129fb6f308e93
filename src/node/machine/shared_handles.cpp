// Descriptors and fabric handles; see shared_handles.h.
#include "node/machine/shared_handles.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/sha256.h"

namespace allranks::node {
namespace {

// Each is a descriptor of the node's. One process must not take them all, nor all processes
// together.
constexpr std::ptrdiff_t kMaxDescriptors = 2048;

std::size_t MaxDescriptorsOfAll() {
  rlimit files{};
  return getrlimit(RLIMIT_NOFILE, &files) == 0 ? static_cast<std::size_t>(files.rlim_cur / 2) : 512;
}
constexpr std::uint64_t kMagic = 0x3141'4642'4b4e'5241;  // "ARNKBFA1"

bool Key(int fd, std::pair<dev_t, ino_t>* key) {
  struct stat status{};
  if (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return false;
  *key = {status.st_dev, status.st_ino};
  return true;
}

}  // namespace

// One key of fixed length, whatever the secret's is.
SharedHandles::SharedHandles(const std::string& secret) {
  if (secret.empty()) {
    CHECK(getrandom(key_.data(), key_.size(), 0) == static_cast<ssize_t>(key_.size()));
  } else {
    key_ = Sha256(secret);
  }
}

SharedHandles::~SharedHandles() {
  for (const auto& [key, descriptor] : descriptors_) close(descriptor.reading_end);
}

SharedHandles::Signature SharedHandles::Sign(std::uint64_t kind, std::uint64_t number) const {
  const std::uint64_t words[] = {kind, number};
  unsigned char message[sizeof words];
  std::memcpy(message, words, sizeof words);
  Signature signature{};
  unsigned size = 0;
  CHECK(HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()), message, sizeof message,
             signature.data(), &size) != nullptr &&
        size == signature.size());
  return signature;
}

bool SharedHandles::Signed(std::uint64_t kind, std::uint64_t number,
                           const std::uint8_t* bytes) const {
  const Signature signature = Sign(kind, number);
  return CRYPTO_memcmp(signature.data(), bytes, signature.size()) == 0;
}

int SharedHandles::Export(ProcessId process, const std::shared_ptr<Shared>& what) {
  Reap();
  const auto open = std::count_if(descriptors_.begin(), descriptors_.end(), [&](const auto& entry) {
    return entry.second.process == process;
  });
  int ends[2];
  if (open >= kMaxDescriptors || descriptors_.size() >= MaxDescriptorsOfAll() ||
      pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    return -1;
  std::pair<dev_t, ino_t> key;
  CHECK(Key(ends[0], &key));
  descriptors_[key] = {ends[0], process, what};
  return ends[1];
}

std::shared_ptr<Shared> SharedHandles::Find(int fd) const {
  std::pair<dev_t, ino_t> key;
  // Only a pipe is asked what it is: a file's system might not answer.
  if (fd < 0 || fcntl(fd, F_GETPIPE_SZ) < 0 || !Key(fd, &key)) return nullptr;
  const auto it = descriptors_.find(key);
  return it == descriptors_.end() ? nullptr : it->second.what;
}

FabricHandle SharedHandles::ExportFabric(const std::shared_ptr<Shared>& what) {
  if (what->fabric == 0) {
    std::erase_if(fabrics_, [](const auto& entry) { return entry.second.expired(); });
    what->fabric = next_++;
    fabrics_[what->fabric] = what;
  }
  const std::uint64_t words[] = {kMagic, what->fabric};
  const Signature signature = Sign(kMagic, what->fabric);
  FabricHandle handle{};
  std::memcpy(handle.data(), words, sizeof words);
  std::memcpy(handle.data() + sizeof words, signature.data(), signature.size());
  return handle;
}

std::shared_ptr<Shared> SharedHandles::Find(const FabricHandle& handle) const {
  std::uint64_t words[8];
  std::memcpy(words, handle.data(), sizeof words);
  const auto it = fabrics_.find(words[1]);
  if (words[0] != kMagic || it == fabrics_.end() || (words[6] | words[7]) != 0 ||
      !Signed(kMagic, words[1], handle.data() + 16)) {
    return nullptr;
  }
  return it->second.lock();
}

void SharedHandles::Reap() {
  std::vector<pollfd> polls;
  polls.reserve(descriptors_.size());
  for (const auto& [key, descriptor] : descriptors_)
    polls.push_back({descriptor.reading_end, 0, 0});
  if (polls.empty() || poll(polls.data(), polls.size(), 0) <= 0) return;
  std::size_t i = 0;
  for (auto it = descriptors_.begin(); it != descriptors_.end(); ++i) {
    if ((polls[i].revents & POLLHUP) == 0) {
      ++it;
      continue;
    }
    close(it->second.reading_end);
    it = descriptors_.erase(it);
  }
}

}  // namespace allranks::node
