#include "judge/shared_folder.h"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace allranks::judge {

Result<SharedFolder> SharedFolder::Make(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  // Ranks may be other users than the judge; the folder around it keeps everybody else out.
  if (mkdir(path.c_str(), 0700) != 0 || chmod(path.c_str(), 01777) != 0)
    return Fail("cannot create the folder {}: {}", path, std::strerror(errno));
  wire::Fd news(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (news.get() < 0 || inotify_add_watch(news.get(), path.c_str(), IN_CREATE | IN_ONLYDIR) < 0)
    return Fail("cannot watch the folder {}: {}", path, std::strerror(errno));
  return SharedFolder(path, std::move(news));
}

bool SharedFolder::Overfull() {
  alignas(inotify_event) char events[4096];
  for (;;) {
    const ssize_t count = read(news_.get(), events, sizeof events);
    if (count <= 0) break;
    for (ssize_t at = 0; at < count;) {
      const auto* event = reinterpret_cast<const inotify_event*>(events + at);
      // What did not fit into the kernel's queue are files, too.
      files_ += (event->mask & IN_Q_OVERFLOW) != 0 ? kMostFiles + 1 : 1;
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
    if (files_ > kMostFiles) break;
  }
  return files_ > kMostFiles;
}

}  // namespace allranks::judge
