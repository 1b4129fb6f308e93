// Theory of operation. bwrap stays outside as the parent of process 1 of the new namespace; process
// 1 is bwrap's own too, and reaps. When the line ends, process 1 ends, and the kernel kills
// whatever is left in the namespace. When we want an end, we kill the outer bwrap: process 1 dies
// with it
// (--die-with-parent), and so does everything else, however it was detached. bwrap itself dies with
// the thread that started it, so a killed run leaves nothing either. Both pipes at their end say
// that it is so.
//
// Everything of the machine is there as the user sees it, but: folders of `hidden` are empty; the
// folder for temporary files is a private one, because judgements of other candidates and other
// agents keep theirs in it; /proc shows the namespace only; there are no capabilities, so a root
// user's agent cannot unmount what hides.
#include "model/confined.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "judge/spawn.h"
#include "wire/frame.h"

namespace allranks::model {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostErrors = 64 << 10;
constexpr auto kStep = std::chrono::milliseconds(50);
constexpr auto kDying = std::chrono::seconds(10);  // for the kernel to end a namespace

bool Covers(const fs::path& folder, const fs::path& path) {
  const auto [at, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return at == folder.end();
}

// Each once, without links, and none within another: the outer one hides it already.
std::vector<fs::path> Outermost(const std::vector<fs::path>& paths) {
  std::vector<fs::path> all;
  for (const fs::path& path : paths) {
    std::error_code error;
    fs::path real = fs::canonical(path, error);
    if (!error) all.push_back(std::move(real));
  }
  std::sort(all.begin(), all.end());
  std::vector<fs::path> kept;
  for (fs::path& path : all) {
    const bool inside = std::any_of(kept.begin(), kept.end(),
                                    [&](const fs::path& outer) { return Covers(outer, path); });
    if (!inside) kept.push_back(std::move(path));
  }
  return kept;
}

Result<std::vector<std::string>> Arguments(const ConfinedOrder& order) {
  const std::string& bwrap = judge::FindBubblewrap();
  if (bwrap.empty())
    return Fail(
        "commands need bubblewrap, but PATH has no bwrap: install it (apt-get install "
        "bubblewrap)");
  std::error_code error;
  const fs::path temporary = fs::canonical(fs::temp_directory_path(error), error);
  const fs::path folder = fs::canonical(order.folder, error);
  if (error) return Fail("{}: {}", order.folder.string(), error.message());

  std::vector<std::string> words = {
      bwrap,        "--dev-bind", "/",      "/",    "--unshare-pid", "--die-with-parent",
      "--cap-drop", "ALL",        "--proc", "/proc"};
  std::vector<fs::path> covered = order.hidden;
  covered.push_back(temporary);
  covered.emplace_back("/tmp");
  std::vector<std::string> closed;
  for (const fs::path& path : Outermost(covered)) {
    if (path == "/") return Fail("a command cannot run if all of / is hidden from it");
    if (fs::is_directory(path, error)) {
      words.insert(words.end(), {"--tmpfs", path.string()});
      const bool scratch = path == temporary || path == "/tmp";
      if (!scratch) closed.push_back(path.string());
    } else {
      words.insert(words.end(), {"--ro-bind", "/dev/null", path.string()});
    }
  }
  words.insert(words.end(), {"--bind", folder.string(), folder.string()});
  for (const std::string& path : closed) words.insert(words.end(), {"--remount-ro", path});
  words.insert(words.end(), {"--chdir", folder.string(), "--", "/bin/sh", "-c", order.line});
  return words;
}

// This process's, with the order's in place of those of the same name. TMPDIR goes: what it names
// may be hidden.
std::vector<std::string> Environment(const ConfinedOrder& order) {
  std::vector<std::string> all;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced =
        name == "TMPDIR" || std::any_of(order.environment.begin(), order.environment.end(),
                                        [&](const auto& own) { return own.first == name; });
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : order.environment) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

struct Pipe {
  wire::Fd ours, theirs;
  bool Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    ours = wire::Fd(ends[0]);
    theirs = wire::Fd(ends[1]);
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
  }
};

Result<pid_t> Start(std::vector<std::string> arguments, std::vector<std::string> environment,
                    int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  // A session of its own: a Ctrl-C at the terminal is the run's, which ends it in its own time.
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD})
    sigaddset(&defaults, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, arguments[0].c_str(), &actions, &attributes,
                                Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return Fail("cannot start {}: {}", arguments[0], std::strerror(error));
  return pid;
}

// What there is to read now; false at the end.
template <class Take>
bool Read(int fd, const Take& take) {
  char buffer[1 << 16];
  for (int rounds = 0; rounds < 16; ++rounds) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    take(std::string_view(buffer, static_cast<std::size_t>(got)));
  }
  return true;
}

}  // namespace

Result<ConfinedEnd> RunConfined(const ConfinedOrder& order, const Stop& stop) {
  auto arguments = Arguments(order);
  if (!arguments) return Fail(arguments.error());
  Pipe out, err;
  if (!out.Open() || !err.Open()) return Fail("cannot create a pipe: {}", std::strerror(errno));
  const auto pid =
      Start(std::move(*arguments), Environment(order), out.theirs.get(), err.theirs.get());
  if (!pid) return Fail(pid.error());
  out.theirs = wire::Fd();
  err.theirs = wire::Fd();

  ConfinedEnd end;
  const auto deadline = Clock::now() + order.wall;
  auto last = Clock::time_point::max();
  bool out_open = true, err_open = true, running = true;
  while (running || ((out_open || err_open) && Clock::now() < last)) {
    pollfd ready[2] = {{out_open ? out.ours.get() : -1, POLLIN, 0},
                       {err_open ? err.ours.get() : -1, POLLIN, 0}};
    poll(ready, 2, static_cast<int>(kStep.count()));
    if (out_open) {
      out_open = Read(out.ours.get(), [&](std::string_view text) {
        end.out += text.substr(0, order.most_output - std::min(order.most_output, end.out.size()));
      });
    }
    if (err_open) {
      err_open = Read(err.ours.get(), [&](std::string_view text) {
        end.err += text;
        if (end.err.size() > 2 * kMostErrors) end.err.erase(0, end.err.size() - kMostErrors);
      });
    }
    if (!running) continue;
    int status = 0;
    if (waitpid(*pid, &status, WNOHANG) == *pid) {
      running = false;
      last = Clock::now() + kDying;
      if (end.why == ConfinedEnd::Why::kExit)
        end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      continue;
    }
    if (end.why != ConfinedEnd::Why::kExit) continue;
    if (stop.requested()) {
      end.why = ConfinedEnd::Why::kStopped;
    } else if (Clock::now() >= deadline) {
      end.why = ConfinedEnd::Why::kWall;
    } else {
      continue;
    }
    kill(*pid, SIGKILL);
  }
  if (end.err.size() > kMostErrors) end.err.erase(0, end.err.size() - kMostErrors);
  return end;
}

}  // namespace allranks::model
