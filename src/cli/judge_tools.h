// What the commands around judging share: where compiler, headers and cache are.
#pragma once

#include <string>

#include "base/result.h"
#include "judge/judge.h"

namespace allranks::cli {

// `cache`: false if nothing built is to be kept or taken from before.
Result<judge::Tools> FindTools(bool cache);

// 16 hexadecimal digits of the operating system's randomness.
std::string RandomSeed();

}  // namespace allranks::cli
