#include "judge/scratch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/sha256.h"
#include "judge/cgroup.h"

namespace allranks::judge {

namespace fs = std::filesystem;

namespace {

fs::path Base() {
  std::error_code error;
  const fs::path base = fs::temp_directory_path(error);
  return error ? fs::path("/tmp") : base;
}

}  // namespace

Result<Scratch> Scratch::Make() {
  std::string pattern = (Base() / (MakerName() + "-XXXXXX")).string();
  if (mkdtemp(pattern.data()) == nullptr)
    return Fail("cannot create a temporary folder {}: {}", pattern, std::strerror(errno));
  Scratch made;
  made.path_ = pattern;
  // Sandboxes run as another user and must get through to what is bound into them.
  if (chmod(pattern.c_str(), 0711) != 0)
    return Fail("cannot open {}: {}", pattern, std::strerror(errno));
  return made;
}

Scratch::Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, "")) {}
Scratch& Scratch::operator=(Scratch&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}
Scratch::~Scratch() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void SweepScratch() {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(Base(), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kMakerPrefix) || !MakerIsGone(name)) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

std::string HashOf(std::initializer_list<std::string_view> parts) {
  Sha256Stream digest;
  for (const std::string_view part : parts) {
    const std::uint64_t size = part.size();
    digest.Add(std::as_bytes(std::span(&size, 1)));
    digest.Add(part);
  }
  return Hex(digest.Finish());
}

Result<std::string> HashOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fail("cannot read {}: {}", path, std::strerror(errno));
  Sha256Stream digest;
  std::vector<char> buffer(1 << 16);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || file.gcount() > 0)
    digest.Add(std::string_view(buffer.data(), static_cast<std::size_t>(file.gcount())));
  return Hex(digest.Finish());
}

std::string Cache::Find(const std::string& kind, const std::string& hash) const {
  if (!enabled()) return "";
  const fs::path path = fs::path(folder_) / kind / hash;
  // What somebody else could have put there is not taken.
  const auto own = [](const fs::path& one, mode_t type) {
    struct stat info{};
    return lstat(one.c_str(), &info) == 0 && (info.st_mode & S_IFMT) == type &&
           info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  };
  return own(path, S_IFREG) && own(path.parent_path(), S_IFDIR) ? path.string() : "";
}

Result<std::string> Cache::Put(const std::string& kind, const std::string& hash,
                               const std::string& file) const {
  const fs::path folder = fs::path(folder_) / kind;
  std::error_code error;
  fs::create_directories(folder, error);
  const fs::path path = folder / hash;
  const fs::path part = folder / fmt::format("{}.{}.{}", hash, getpid(), gettid());
  if (!error) fs::copy_file(file, part, fs::copy_options::overwrite_existing, error);
  if (!error)
    fs::permissions(part,
                    fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                        fs::perms::others_read | fs::perms::others_exec,
                    error);
  // Another judgement may have put the same there meanwhile, and a sandbox of its may be about to
  // bind it: a file that is replaced can no longer be bound. Only what is not ours is replaced.
  if (!error && renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST && !Find(kind, hash).empty()) {
      fs::remove(part, error);
    } else {
      fs::rename(part, path, error);
    }
  }
  if (error) return Fail("cannot write to the cache {}: {}", folder_, error.message());
  return path.string();
}

}  // namespace allranks::judge
