// Paths on the command line, checked before any work begins: files and folders that are read, and
// those that are written. Each check returns why a path cannot be used, or nothing.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace allranks::cli {

// A file to read: it exists, is no folder and no device, and can be read. `may_be_empty`: false if
// an empty file is a mistake.
std::string WhyNotRead(const std::string& path, bool may_be_empty = true);
// A file to write: its folder exists, and it can be created or opened for writing.
std::string WhyNotWritten(const std::string& path);
// A folder to read.
std::string WhyNoFolder(const std::string& path);
// A folder to write to: it is one, or can be created.
std::string WhyNoNewFolder(const std::string& path);

// A program that cannot be started: why, and the exit code of shells for that (126 or 127).
struct CannotStart {
  int code;
  std::string why;
};
std::optional<CannotStart> WhyNotStarted(const std::string& program);

// The same checks for options.
CLI::Validator InputFile();
CLI::Validator FilledFile();  // a file that is not empty
CLI::Validator OutputFile();
CLI::Validator InputFolder();
CLI::Validator OutputFolder();

// Two options of a command that would write to one place: the message, or nothing. Knows them by
// their validators.
std::string SameOutputs(const CLI::App& command);

}  // namespace allranks::cli
