// Starts ranks and waits for them. It runs under the node as any other program does: its forks are
// announced and its waits are seen, so that the ranks' order does not depend on the machine.
#include "cli/ranks.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/exec.h"
#include "cli/places.h"
#include "wire/frame.h"

namespace allranks::cli {

namespace {

constexpr unsigned kGraceSeconds = 2;  // of virtual time, between SIGTERM and SIGKILL

// A port that nobody listens at now, for whichever rank opens it.
int FreePort() {
  const wire::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd.get(), any, size) != 0 || getsockname(fd.get(), any, &size) != 0) return 29500;
  return ntohs(address.sin_port);
}

void SetNumber(const char* name, int value) { setenv(name, std::to_string(value).c_str(), 1); }

void Describe(const RankOptions& options, int rank) {
  const int host = rank / options.per_host, local = rank % options.per_host;
  const int on_host = std::min(options.per_host, options.ranks - host * options.per_host);
  SetNumber("ALLRANKS_HOST", host);
  SetNumber("GROUP_RANK", host);
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK"}) SetNumber(name, rank);
  for (const char* name : {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"}) SetNumber(name, options.ranks);
  for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"}) SetNumber(name, local);
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"})
    SetNumber(name, on_host);
}

int CodeOf(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int StartRanks(const RankOptions& options) {
  std::vector<std::string> arguments = options.command;
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  SetNumber("MASTER_PORT", FreePort());
  std::vector<pid_t> left;
  int code = 0;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      Describe(options, rank);
      execvp(argv[0], argv.data());
      const int error = errno;
      std::fprintf(stderr, "allranks: cannot run %s: %s\n", argv[0], std::strerror(error));
      _exit(error == ENOENT ? kExitNotFound : kExitCannotRun);
    }
    if (pid < 0) {
      std::fprintf(stderr, "allranks: cannot start rank %d: %s\n", rank, std::strerror(errno));
      code = kExitInternal;
      break;
    }
    left.push_back(pid);
  }
  const auto end = [&](int signal) {
    for (const pid_t pid : left) kill(pid, signal);
  };
  const auto ended = [&](pid_t pid, int status) {
    std::erase(left, pid);
    if (code != 0 || CodeOf(status) == 0) return;
    code = CodeOf(status);
    end(SIGTERM);
  };
  if (code != 0) end(SIGTERM);
  int status = 0;
  while (!left.empty() && code == 0) {
    const pid_t pid = wait(&status);
    if (pid > 0) {
      ended(pid, status);
    } else if (errno != EINTR) {
      return kExitInternal;
    }
  }
  for (unsigned second = 0; !left.empty(); ++second) {
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) std::erase(left, pid);
    if (left.empty()) break;
    if (second >= kGraceSeconds) end(SIGKILL);
    sleep(1);
  }
  return code;
}

void SetLauncherDefaults(bool several_hosts) {
  static constexpr const char* kDefaults[][2] = {
      // Others look for real network hardware, some for seconds, and measure it by the real clock.
      {"OMPI_MCA_pml", "ob1"},
      {"OMPI_MCA_btl", "self,vader,tcp"},
      {"OMPI_MCA_btl_tcp_if_include", "lo"},
      {"OMPI_MCA_oob_tcp_if_include", "lo"},
      // The kernel cannot reach pinned pages of another process while devices use them.
      {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
      // A rank that polls without a system call would be a silent thread.
      {"OMPI_MCA_mpi_yield_when_idle", "1"},
      // Ranks are many more than the cores of this machine, and take turns.
      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
  };
  for (const auto& [name, value] : kDefaults) setenv(name, value, 0);
  if (several_hosts) setenv("OMPI_MCA_plm_rsh_agent", (OwnPath() + " rsh").c_str(), 0);
}

int RunOnHost(int argc, char** argv) {
  const std::string host = argc > 0 ? argv[0] : "";
  const std::string number = host.starts_with("node") ? host.substr(4) : "";
  if (argc < 2 || number.empty() || number.find_first_not_of("0123456789") != std::string::npos) {
    std::fprintf(stderr,
                 "allranks: no simulated host is named %s (the names are node0, node1, ...)\n",
                 host.c_str());
    return kExitUsage;
  }
  std::string command;
  for (int i = 1; i < argc; ++i) command += fmt::format("{}{}", i == 1 ? "" : " ", argv[i]);
  setenv("ALLRANKS_HOST", number.c_str(), 1);
  execlp("sh", "sh", "-c", command.c_str(), nullptr);
  return kExitCannotRun;
}

}  // namespace allranks::cli
