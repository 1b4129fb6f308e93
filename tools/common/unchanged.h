// Candidates that have got the verdict they should, kept with what they were judged by: one that
// has not changed is judged again on one of several days only, more often if its judge has changed.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "base/result.h"
#include "cli/check_record.h"

namespace allranks::tools {

class Unchanged {
 public:
  // The options --changed, --sample and --record.
  void AddOptions(CLI::App& app);
  // `file` is the record.
  Status Load(const std::filesystem::path& file);
  // Whether a candidate need not be judged. `about` is its text and whatever else its verdict
  // depends on beside the problem and the judge.
  Result<bool> LeaveOut(const std::string& name, const std::string& problem,
                        std::string_view about);
  // What became of one that was asked about. May be called by several threads.
  void Note(const std::string& name, bool good);
  // Writes the record if that is asked for, and says how many were left out.
  Status Store();

 private:
  // What is in the folder of a problem; read once.
  Result<std::string> FilesOf(const std::string& problem);

  bool changed_ = false, record_ = false;
  int sample_ = 24;
  std::filesystem::path file_;
  cli::CheckRecord known_;
  std::map<std::string, std::string> files_;   // by problem
  std::map<std::string, cli::CheckKey> keys_;  // of this run, by name
  std::size_t left_out_ = 0, sampled_ = 0;
  std::size_t older_ = 0;  // of both: judged by other sources
  std::mutex mutex_;
};

}  // namespace allranks::tools
