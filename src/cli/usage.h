// The first line of a command's help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>

namespace allranks::cli {

// CLI11 knows nothing of what follows `--`, and names a subcommand without the command.
class UsageFormatter : public CLI::Formatter {
 public:
  explicit UsageFormatter(std::string usage) : usage_(std::move(usage)) {}
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: allranks " + usage_ + "\n";
  }

 private:
  std::string usage_;
};

}  // namespace allranks::cli
