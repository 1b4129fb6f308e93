// CPU seconds of the calling thread; a judgement may use several threads.
#pragma once

#include <sys/resource.h>

namespace allranks::judge {

inline double OwnSeconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace allranks::judge
