// What it costs to run the installed NCCL: ncclCommInitAll and one all-reduce of 1 MB on the eight
// devices of a process (tests/nccl/all_reduce.cu), in a first run and a second one.
//
//   build/release/bench/bench_nccl [PROGRAM [ARGUMENT]...]   another program in its place
//
// The first run finds an empty cache folder, the second what the first has left there. Memory is
// that of the largest process, which is the node's.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// Runs `command` and prints a line; false if it fails.
bool Run(const char* name, std::vector<std::string> command) {
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0) {
    fmt::print(stderr, "{} failed: {}\n", command[0],
               child < 0 ? std::strerror(errno) : fmt::format("status {}", status));
    return false;
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  fmt::print("{:<8} {:>8.2f} {:>8.2f} {:>10.2f}\n", name, wall.count(),
             Seconds(used.ru_utime) + Seconds(used.ru_stime),
             static_cast<double>(used.ru_maxrss) * 1024 / 1e9);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path build =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  std::vector<std::string> command = {build / "bin/allranks", "exec", "--"};
  if (argc > 1) {
    command.insert(command.end(), argv + 1, argv + argc);
  } else {
    const std::filesystem::path program = build / "programs/nccl/all_reduce";
    if (!std::filesystem::exists(program)) {
      fmt::print("there is no {}: NCCL or nvcc was not found\n", program.string());
      return 0;
    }
    command.insert(command.end(), {program, "8", "1048576", "once"});
  }
  std::string cache = std::filesystem::temp_directory_path() / "bench_nccl.XXXXXX";
  if (mkdtemp(cache.data()) == nullptr || setenv("ALLRANKS_CACHE", cache.c_str(), 1) != 0) {
    fmt::print(stderr, "cannot make {}: {}\n", cache, std::strerror(errno));
    return 1;
  }
  fmt::print("{:<8} {:>8} {:>8} {:>10}\n", "run", "wall s", "CPU s", "GB");
  const bool good = Run("first", command) && Run("second", command);
  std::error_code ignored;
  std::filesystem::remove_all(cache, ignored);
  return good ? 0 : 1;
}
