// Runs a shell line of the user's that may start anything, and leaves none of it behind: a PID
// namespace of its own (bubblewrap), in which folders that would give answers away are empty. It
// keeps the network and the user's files: agents need both. confined.cpp says how it ends.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/stop.h"

namespace allranks::model {

struct ConfinedOrder {
  std::string line;              // for /bin/sh -c
  std::filesystem::path folder;  // it starts there; the only one of ours it can write
  std::vector<std::filesystem::path>
      hidden;  // empty and read-only for it; missing ones are skipped
  std::vector<std::pair<std::string, std::string>> environment;  // beside this process's own
  std::chrono::milliseconds wall{60'000};
  std::size_t most_output = 4 << 20;  // of stdout; what comes behind it is read and dropped
};

struct ConfinedEnd {
  enum class Why { kExit, kWall, kStopped };
  Why why = Why::kExit;
  int code = 0;     // kExit: as a shell says it, 128 + signal for a signal
  std::string out;  // its beginning
  std::string err;  // its end
};

// Blocks; all that it started is gone when this returns. Fails where it could not be started: the
// message has the remedy.
Result<ConfinedEnd> RunConfined(const ConfinedOrder& order, const Stop& stop);

}  // namespace allranks::model
