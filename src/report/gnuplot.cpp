#include "report/gnuplot.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"

namespace allranks::report {
namespace {

// Length of the UTF-8 character at the beginning, 0 if it is none.
std::size_t CharacterAt(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first < 0xe0   ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates and what lies above U+10FFFF.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90))
    return 0;
  return length;
}

std::string Cleaned(std::string_view text, std::size_t longest, std::size_t* count) {
  std::string out, shorter;  // `shorter`: as long as it may be before the dots
  *count = 0;
  while (!text.empty()) {
    if (*count + 1 == longest) shorter = out;
    if (*count == longest) {
      out = shorter + "…";
      break;
    }
    const std::size_t length = CharacterAt(text);
    if (length == 0)
      out += '?';
    else if (length == 1 && (static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7f))
      out += ' ';
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
    ++*count;
  }
  return out;
}

}  // namespace

std::string Quoted(std::string_view text, std::size_t longest) {
  std::size_t count = 0;
  std::string out = "'";
  for (const char c : Cleaned(text, longest, &count)) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

std::size_t LengthOf(std::string_view text, std::size_t longest) {
  std::size_t count = 0;
  Cleaned(text, longest, &count);
  return count;
}

Status RunGnuplot(const std::filesystem::path& folder, const std::string& script, int seconds) {
  const std::filesystem::path log = folder / "gnuplot.log";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  std::string program = "gnuplot", defaults = "-d", file = script;  // -d: nobody's own settings
  char* const arguments[] = {program.data(), defaults.data(), file.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawnp(&child, "gnuplot", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed == ENOENT)
    return Fail("plots need gnuplot, which is not installed (apt install gnuplot-nox)");
  if (failed != 0) return Fail("gnuplot cannot be started: {}", std::strerror(failed));

  const int handle = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  pollfd wait{handle, POLLIN, 0};
  bool late = false;
  if (handle >= 0) {
    int ready = 0;
    do ready = poll(&wait, 1, seconds * 1000);
    while (ready < 0 && errno == EINTR);
    late = ready == 0;
    if (late) kill(child, SIGKILL);
    close(handle);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string said = ReadWhole(log, 1u << 20).value_or("");
  std::error_code ignored;
  std::filesystem::remove(log, ignored);
  if (late) return Fail("gnuplot did not end within {} s", seconds);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Fail("gnuplot failed: {}",
                said.empty() ? "it printed no message" : said.substr(0, 2000));
  return Ok();
}

}  // namespace allranks::report
