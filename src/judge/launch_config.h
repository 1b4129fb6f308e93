// What the judge tells the launcher, the first program inside a sandbox (launcher/launcher.cpp),
// and what it answers. Both sides are built together, so these are plain bytes without a version.
#pragma once

#include <cstdint>

namespace allranks::judge {

struct LaunchConfig {
  static constexpr int kMostKept = 32, kMostCollected = 8, kMostWords = 1024;
  static constexpr int kMostFilter = 2048;  // instructions
  static constexpr std::uint32_t kMostText = 192 << 10;

  std::int32_t status = -1;  // a pipe, for LaunchReports
  bool locked = false;  // `filter` on the command, which lets it start no program and no process
  bool no_address_randomization = false;
  std::uint64_t files = 0;  // most inodes of /tmp; 0: not watched
  std::uint64_t collect_bytes = 0;
  // 0: as it is.
  std::uint64_t cpu_seconds = 0, file_bytes = 0, descriptors = 0, processes = 0, data_bytes = 0;
  std::int32_t kept[kMostKept] = {};            // descriptors that the command gets
  std::int32_t collected[kMostCollected] = {};  // files into which results are copied
  std::uint32_t kept_count = 0, collected_count = 0;
  std::uint32_t arguments = 0, variables = 0;
  std::uint32_t filter_length = 0;
  std::uint64_t filter[kMostFilter] = {};  // sock_filter
  // The folder, arguments, environment and paths of results, each ended by a zero.
  char text[kMostText] = {};
};

struct LaunchReport {
  enum class Event : std::uint32_t {
    kStarted,     // about to start the command
    kNotStarted,  // `value` is the error number
    kFiles,       // too many files: it is being ended
    kEnded,       // `value` is what wait() said
  };
  Event event = Event::kStarted;
  std::int32_t value = 0;
  std::uint64_t cpu_us = 0, peak_bytes = 0;
  std::uint32_t collected = 0;  // bit i: file i was taken out
};

}  // namespace allranks::judge
