#include "base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

namespace allranks {
namespace {

constexpr const char* kUnfinished = ".part";

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Status MakeFolder(const std::filesystem::path& folder) {
  if (folder.empty()) return Ok();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Fail("cannot create the folder {}: {}", folder.string(), error.message());
  return Ok();
}

// A rename is on the disk when its folder is.
void FlushFolder(const std::filesystem::path& folder) {
  const Descriptor fd(
      open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() >= 0) fsync(fd.get());
}

}  // namespace

Result<std::string> ReadWhole(const std::filesystem::path& path, std::size_t limit) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) return Fail("cannot read {}: {}", path.string(), std::strerror(errno));
  struct stat status{};
  if (fstat(fd.get(), &status) != 0)
    return Fail("cannot read {}: {}", path.string(), std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    return Fail("cannot read {}: it is {}", path.string(),
                S_ISDIR(status.st_mode) ? "a folder" : "not a regular file");
  std::string bytes;
  char piece[1 << 16];
  for (;;) {
    const ssize_t n = read(fd.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail("cannot read {}: {}", path.string(), std::strerror(errno));
    if (n == 0) return bytes;
    bytes.append(piece, static_cast<std::size_t>(n));
    if (bytes.size() > limit) return Fail("{} is longer than {} bytes", path.string(), limit);
  }
}

Status WriteWhole(const std::filesystem::path& path, std::string_view bytes) {
  if (Status made = MakeFolder(path.parent_path()); !made) return made;
  // Threads and processes that write the same file do not share the one beside it.
  static std::atomic<unsigned> count = 0;
  const std::string beside =
      fmt::format("{}.{}-{}{}", path.string(), getpid(), count++, kUnfinished);
  const auto failed = [&](const char* what) {
    const int why = errno;
    unlink(beside.c_str());
    return Fail("cannot {} {}: {}", what, path.string(), std::strerror(why));
  };
  {
    const Descriptor fd(open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd.get() < 0) return failed("write");
    if (!WriteAll(fd.get(), bytes) || fsync(fd.get()) != 0) return failed("write");
  }
  if (rename(beside.c_str(), path.c_str()) != 0) return failed("replace");
  FlushFolder(path.parent_path());
  return Ok();
}

void SweepUnfinished(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (std::filesystem::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    if (at->path().extension() == kUnfinished) left.push_back(at->path());
  for (const std::filesystem::path& file : left) std::filesystem::remove(file, error);
}

Status AppendLine(const std::filesystem::path& path, std::string_view line) {
  if (Status made = MakeFolder(path.parent_path()); !made) return made;
  const Descriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (fd.get() < 0) return Fail("cannot write {}: {}", path.string(), std::strerror(errno));
  // Another's line is not looked at half written. The lock goes with the descriptor.
  if (flock(fd.get(), LOCK_EX) != 0)
    return Fail("cannot lock {}: {}", path.string(), std::strerror(errno));
  char last = '\n';
  const off_t size = lseek(fd.get(), 0, SEEK_END);
  const bool half = size > 0 && pread(fd.get(), &last, 1, size - 1) == 1 && last != '\n';
  std::string piece(half ? "\n" : "");
  piece.append(line).append("\n");
  // In one piece, so that lines of several threads do not mix.
  if (!WriteAll(fd.get(), piece) || fdatasync(fd.get()) != 0)
    return Fail("cannot write {}: {}", path.string(), std::strerror(errno));
  return Ok();
}

}  // namespace allranks
