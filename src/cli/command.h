// A command of `allranks` with its options. commands.cpp lists those there are; adding one is a
// line there and a file of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

// CLI11 takes seconds to compile: only files that add options include it.
namespace CLI {
class App;
}

namespace allranks::cli {

class Command {
 public:
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  virtual ~Command() = default;
  // What stands behind `--`.
  virtual void Behind(const std::vector<std::string>&) {}
  virtual int Run() const = 0;  // an exit code

  bool parsed() const;
  std::string name() const;
  std::string help() const;

 protected:
  Command() = default;
  CLI::App* command_ = nullptr;  // its own, below the program's
};

// Wrong usage: the message to stderr, and the exit code.
int Usage(const std::string& message);

// Each tells itself to `app`, in the order in which help lists them.
std::vector<std::unique_ptr<Command>> MakeCommands(CLI::App* app);

}  // namespace allranks::cli
