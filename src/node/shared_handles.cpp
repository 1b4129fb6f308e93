// Descriptors and fabric handles; see shared_handles.h.
#include "node/shared_handles.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace allranks::node {
namespace {

// Each is a descriptor of the node's; one process must not take them all.
constexpr std::ptrdiff_t kMaxDescriptors = 512;
constexpr std::uint64_t kMagic = 0x3141'4642'4b4e'5241;  // "ARNKBFA1"

bool Key(int fd, std::pair<dev_t, ino_t>* key) {
  struct stat status{};
  if (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return false;
  *key = {status.st_dev, status.st_ino};
  return true;
}

}  // namespace

SharedHandles::SharedHandles(std::uint64_t secret) : state_(secret), random_(secret == 0) {}

SharedHandles::~SharedHandles() {
  for (const auto& [key, descriptor] : descriptors_) close(descriptor.reading_end);
}

std::uint64_t SharedHandles::Draw() {
  std::uint64_t value = 0;
  if (random_) {
    CHECK(getrandom(&value, sizeof value, 0) == sizeof value);
    return value;
  }
  state_ += 0x9e3779b97f4a7c15;
  value = state_;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

int SharedHandles::Export(ProcessId process, const std::shared_ptr<Shared>& what) {
  Reap();
  const auto open = std::count_if(descriptors_.begin(), descriptors_.end(), [&](const auto& entry) {
    return entry.second.process == process;
  });
  int ends[2];
  if (open >= kMaxDescriptors || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
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
    std::erase_if(fabrics_, [](const auto& entry) { return entry.second.what.expired(); });
    what->fabric = next_++;
    Fabric& made = fabrics_[what->fabric];
    made.what = what;
    for (std::uint64_t& word : made.key) word = Draw();
  }
  const Fabric& fabric = fabrics_.at(what->fabric);
  const std::uint64_t words[] = {kMagic, what->fabric, fabric.key[0], fabric.key[1]};
  FabricHandle handle{};
  std::memcpy(handle.data(), words, sizeof words);
  return handle;
}

std::shared_ptr<Shared> SharedHandles::Find(const FabricHandle& handle) const {
  std::uint64_t words[8];
  std::memcpy(words, handle.data(), sizeof words);
  const auto it = fabrics_.find(words[1]);
  if (words[0] != kMagic || it == fabrics_.end() || it->second.key[0] != words[2] ||
      it->second.key[1] != words[3] || (words[4] | words[5] | words[6] | words[7]) != 0) {
    return nullptr;
  }
  return it->second.what.lock();
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
