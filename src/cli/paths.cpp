// See paths.h. Whether a file can be written is found by trying: permissions do not tell it of
// root, nor of file systems such as /proc.
#include "cli/paths.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/exec.h"
#include "wire/frame.h"

namespace allranks::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOutput = "output";  // the name of the validators of what is written

// The folder that a path names something in.
fs::path FolderOf(const fs::path& path) {
  const fs::path folder = path.parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

// Why nothing can be at `path`: what stands before its last part.
std::string WhyNothing(const std::string& path, int error) {
  if (error == ENOENT && path == "-")
    return "there is no file '-', and standard input is not read: write the text to a file and "
           "give its name";
  if (error == ENOENT) return fmt::format("there is no file or folder {}", path);
  if (error == ENOTDIR)
    return fmt::format("there is no {}: a part of its path is not a folder", path);
  return fmt::format("cannot read {}: {}", path, std::strerror(error));
}

CLI::Validator Check(std::string (*why)(const std::string&), const char* name = "") {
  return CLI::Validator([why](std::string& path) { return why(path); }, "", name);
}

// The line of a script that names its interpreter.
std::string InterpreterOf(const std::string& text) {
  if (!text.starts_with("#!")) return "";
  const std::string line = text.substr(2, text.find('\n') - 2);
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_first_of(" \t\r", begin) - begin);
}

CannotStart NotFound(const std::string& program) {
  std::string why = fmt::format("cannot run {}: there is no such program", program);
  std::error_code error;
  if (program.starts_with("-")) {
    why += "; options of allranks go before `--`";
  } else if (program.find('/') == std::string::npos) {
    why += fs::exists(program, error)
               ? fmt::format(" in PATH; the file in this folder is ./{}", program)
               : " in PATH";
  }
  return {kExitNotFound, why};
}

// A file at a path that has a slash.
std::optional<CannotStart> WhyNotStartedAt(const std::string& path, const std::string& program) {
  const auto cannot = [&](const std::string& why) {
    return CannotStart{kExitCannotRun, fmt::format("cannot run {}: {}", program, why)};
  };
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return NotFound(program);
    return cannot(std::strerror(errno));
  }
  if (S_ISDIR(status.st_mode)) return cannot("it is a folder, not a program");
  if (access(path.c_str(), X_OK) != 0)
    return cannot(fmt::format("it is not executable: `chmod +x {}` if it is a program", program));
  std::ifstream file(path, std::ios::binary);
  std::string start(256, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  if (start.empty() || start.starts_with("\177ELF")) return std::nullopt;
  if (start.starts_with("#!")) {
    const std::string interpreter = InterpreterOf(start);
    if (interpreter.empty() || access(interpreter.c_str(), X_OK) == 0) return std::nullopt;
    return cannot(fmt::format("its interpreter #!{} {}", interpreter,
                              errno == ENOENT ? "does not exist" : "cannot be executed"));
  }
  // As shells do: a text without #! is a script of sh, anything else is not.
  const std::string_view line = std::string_view(start).substr(0, start.find('\n'));
  if (line.find('\0') == std::string_view::npos) return std::nullopt;
  return cannot("its format is neither that of a program nor that of a script");
}

}  // namespace

std::string WhyNotRead(const std::string& path, bool may_be_empty) {
  if (path.empty()) return "the name of the file is empty";
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return WhyNothing(path, errno);
  if (S_ISDIR(status.st_mode)) return fmt::format("{} is a folder, not a file", path);
  if (S_ISFIFO(status.st_mode)) return "";  // `<(command)` of a shell; what is read is gone
  if (!S_ISREG(status.st_mode)) return fmt::format("{} is a device, not a regular file", path);
  const wire::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char byte = 0;
  const ssize_t count = file.get() < 0 ? -1 : read(file.get(), &byte, 1);
  if (count < 0) return fmt::format("cannot read {}: {}", path, std::strerror(errno));
  if (count == 0 && !may_be_empty) return fmt::format("{} is empty", path);
  return "";
}

std::string WhyNotWritten(const std::string& path) {
  if (path.empty()) return "the name of the file is empty";
  const auto cannot = [&](int error) {
    return fmt::format("cannot write {}: {}", path, std::strerror(error));
  };
  struct stat status;
  if (stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return fmt::format("{} is a folder, not a file", path);
    const wire::Fd file(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    // A pipe whose reader comes later.
    return file.get() >= 0 || errno == ENXIO ? "" : cannot(errno);
  }
  const std::string folder = FolderOf(path).string();
  if (stat(folder.c_str(), &status) != 0 && errno == ENOENT)
    return fmt::format("cannot write {}: the folder {} does not exist", path, folder);
  if (!S_ISDIR(status.st_mode))
    return fmt::format("cannot write {}: {} is not a folder", path, folder);
  const wire::Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) return cannot(errno);
  unlink(path.c_str());
  return "";
}

std::string WhyNoFolder(const std::string& path) {
  if (path.empty()) return "the name of the folder is empty";
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return WhyNothing(path, errno);
  if (!S_ISDIR(status.st_mode)) return fmt::format("{} is not a folder", path);
  if (access(path.c_str(), R_OK | X_OK) != 0)
    return fmt::format("cannot read the folder {}: {}", path, std::strerror(errno));
  return "";
}

std::string WhyNoNewFolder(const std::string& path) {
  if (path.empty()) return "the name of the folder is empty";
  struct stat status;
  if (stat(path.c_str(), &status) == 0) {
    if (!S_ISDIR(status.st_mode)) return fmt::format("{} is a file, not a folder", path);
    if (access(path.c_str(), W_OK | X_OK) != 0)
      return fmt::format("cannot write to the folder {}: {}", path, std::strerror(errno));
    return "";
  }
  // The first of the folders that would have to be created.
  std::error_code error;
  fs::path first = fs::absolute(path, error).lexically_normal();
  if (!first.has_filename()) first = first.parent_path();
  while (first.has_relative_path() && !fs::exists(first.parent_path(), error))
    first = first.parent_path();
  if (!fs::is_directory(first.parent_path(), error))
    return fmt::format("cannot create the folder {}: {} is not a folder", path,
                       first.parent_path().string());
  if (mkdir(first.c_str(), 0777) != 0)
    return fmt::format("cannot create the folder {}: {}", path, std::strerror(errno));
  rmdir(first.c_str());
  return "";
}

std::optional<CannotStart> WhyNotStarted(const std::string& program) {
  if (program.empty()) return CannotStart{kExitNotFound, "the name of the program is empty"};
  if (program.find('/') != std::string::npos) return WhyNotStartedAt(program, program);
  const char* path = std::getenv("PATH");
  std::string folders = path == nullptr ? "/bin:/usr/bin" : path;
  std::optional<CannotStart> refused;
  for (std::size_t at = 0; at <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    const std::string folder = end == at ? "." : folders.substr(at, end - at);
    at = end + 1;
    struct stat status;
    const std::string file = folder + "/" + program;
    if (stat(file.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) continue;
    std::optional<CannotStart> why = WhyNotStartedAt(file, program);
    if (!why) return std::nullopt;
    if (!refused) refused = std::move(why);
  }
  return refused ? refused : NotFound(program);
}

CLI::Validator InputFile() {
  return Check([](const std::string& path) { return WhyNotRead(path); });
}
CLI::Validator FilledFile() {
  return Check([](const std::string& path) { return WhyNotRead(path, false); });
}
CLI::Validator OutputFile() { return Check(WhyNotWritten, kOutput); }
CLI::Validator InputFolder() { return Check(WhyNoFolder); }
CLI::Validator OutputFolder() { return Check(WhyNoNewFolder, kOutput); }

std::string SameOutputs(const CLI::App& command) {
  std::vector<std::pair<fs::path, const CLI::Option*>> known;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    try {
      // The library has no such question for a constant option.
      const_cast<CLI::Option*>(option)->get_validator(kOutput);
    } catch (const CLI::OptionNotFound&) {
      continue;
    }
    const std::string path = option->results().front();
    std::error_code error;
    if (fs::exists(path, error) && !fs::is_regular_file(path, error) &&
        !fs::is_directory(path, error))
      continue;  // /dev/null, a terminal
    fs::path place = fs::weakly_canonical(fs::absolute(path, error), error);
    if (error) continue;
    for (const auto& [other, name] : known)
      if (other == place)
        return fmt::format("{} and {} both write to {}: give two different names", name->get_name(),
                           option->get_name(), path);
    known.emplace_back(std::move(place), option);
  }
  return "";
}

}  // namespace allranks::cli
