// `judging large`: what a large case of allreduce_two_shot takes, and that a missing release is
// found in it.
#pragma once

#include <filesystem>

namespace allranks::tools {

struct LargeLimits {
  double seconds = 0;    // of CPU for a judgement; 0: any
  double gigabytes = 0;  // of memory of all its processes; 0: any
};

// `megabytes`: of each rank's message. Works in `folder`.
int Large(const std::filesystem::path& folder, int megabytes, const LargeLimits& limits);

}  // namespace allranks::tools
