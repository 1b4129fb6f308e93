#include "model/check_box.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <set>

#include "base/files.h"
#include "problem/source.h"

namespace allranks::model {
namespace {

namespace fs = std::filesystem;

constexpr char kScript[] = R"(#!/bin/sh
# ./check [FILE]: judges FILE (solution.cu) on the open cases and prints what the judge says.
file=${1:-solution.cu}
box=$(dirname "$0")/.allranks
if [ ! -f "$file" ]; then echo "check: no such file: $file" >&2; exit 2; fi
n=1
until mkdir "$box/$n" 2>/dev/null; do
  n=$((n + 1))
  if [ $n -gt 1000 ]; then echo "check: too many concurrent checks" >&2; exit 2; fi
done
cp "$file" "$box/$n/part" && mv "$box/$n/part" "$box/$n/source.cu" || exit 2
while [ ! -f "$box/$n/answer.txt" ]; do sleep 0.1; done
cat "$box/$n/answer.txt"
)";

constexpr std::size_t kLongestAnswer = 256 << 10;
constexpr int kMostEntries = 4096;  // of the folder that are looked at
constexpr auto kPause = std::chrono::milliseconds(100);

}  // namespace

Result<std::string> ReadPlain(int folder, const char* name, std::size_t limit) {
  // Without O_NONBLOCK a pipe would make us wait for its writer.
  const wire::Fd file(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno == ENOENT) return Fail("no such file: {}", name);
    if (errno == ELOOP) return Fail("{} is a link", name);
    return Fail("{}: {}", name, std::strerror(errno));
  }
  struct stat about{};
  if (fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode))
    return Fail("{} is not a regular file", name);
  std::string text;
  char buffer[1 << 14];
  while (text.size() < limit) {
    const ssize_t got = read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail("{}: {}", name, std::strerror(errno));
    if (got == 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  if (text.size() > limit) text.resize(limit);
  return text;
}

Result<std::unique_ptr<CheckBox>> CheckBox::Make(const fs::path& folder, Check check) {
  if (auto written = WriteWhole(folder / "check", kScript); !written) return Fail(written.error());
  const fs::path box = folder / ".allranks";
  if (chmod((folder / "check").c_str(), 0755) != 0 || mkdir(box.c_str(), 0755) != 0)
    return Fail("cannot prepare {}: {}", box.string(), std::strerror(errno));
  wire::Fd opened(open(box.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (opened.get() < 0) return Fail("cannot open {}: {}", box.string(), std::strerror(errno));
  return std::unique_ptr<CheckBox>(new CheckBox(std::move(opened), std::move(check)));
}

CheckBox::CheckBox(wire::Fd box, Check check) : box_(std::move(box)), check_(std::move(check)) {
  thread_ = std::thread([this] { Serve(); });
}

CheckBox::~CheckBox() {
  over_.Request();
  thread_.join();
}

void CheckBox::Serve() {
  std::set<std::string> seen;
  while (!over_.requested()) {
    std::vector<std::string> names;
    // A descriptor of its own: closedir closes it.
    const int copy = openat(box_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (DIR* folder = copy < 0 ? nullptr : fdopendir(copy); folder != nullptr) {
      const dirent* entry = nullptr;
      while (names.size() < kMostEntries && (entry = readdir(folder)) != nullptr) {
        const std::string name = entry->d_name;
        if (name != "." && name != ".." && !seen.contains(name)) names.push_back(name);
      }
      closedir(folder);
    } else if (copy >= 0) {
      close(copy);
    }
    for (const std::string& name : names) {
      if (over_.requested() || seen.size() >= kMostEntries) break;
      const std::string source = name + "/source.cu";
      struct stat about{};
      if (fstatat(box_.get(), source.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) continue;
      seen.insert(name);
      Answer(name);
    }
    over_.Sleep(kPause);
  }
}

void CheckBox::Answer(const std::string& name) {
  const wire::Fd folder(
      openat(box_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.get() < 0) return;
  // One byte more than may be: the judge says that it is too large.
  const auto source = ReadPlain(folder.get(), "source.cu", problem::kLargestSource + 1);
  std::string answer;
  if (!source) {
    answer = source.error().message;
  } else if (answered_ >= kMostChecks) {
    answer = "The limit of " + std::to_string(kMostChecks) + " checks is reached.";
  } else {
    ++answered_;
    answer = check_(*source, over_);
  }
  if (answer.size() > kLongestAnswer) answer.resize(kLongestAnswer);
  if (!answer.ends_with('\n')) answer += '\n';
  const wire::Fd file(openat(folder.get(), "answer.part",
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (file.get() < 0) return;
  for (std::string_view rest = answer; !rest.empty();) {
    const ssize_t put = write(file.get(), rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
  renameat(folder.get(), "answer.part", folder.get(), "answer.txt");
}

}  // namespace allranks::model
