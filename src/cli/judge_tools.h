// What the commands around judging share: where compiler, headers and cache are.
#pragma once

#include <string>

#include "base/result.h"
#include "judge/judge.h"

namespace allranks::cli {

// `cache`: false if nothing built is to be kept or taken from before.
Result<judge::Tools> FindTools(bool cache);

// A variable of the environment; empty where it is not set.
std::string Environment(const char* name);
// The CUDA toolkit's folder; empty: there is none.
std::string FindCuda();
// The library, of the toolkit or of the system; empty: there is none.
std::string FindNccl(const std::string& cuda);
// The folder of caches, which need not be there; empty: the environment names none.
std::string CacheFolder();
// Where what is built is kept. The message says why it cannot be.
Result<std::string> FindCache();

// 16 hexadecimal digits of the operating system's randomness.
std::string RandomSeed();

}  // namespace allranks::cli
