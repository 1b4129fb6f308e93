#include "model/attempts.h"

#include <fmt/chrono.h>

#include <chrono>

#include "base/files.h"

namespace allranks::model {

Status NoteAttempt(const Ask& ask, const std::string& line) {
  return ask.folder.empty() ? Ok() : AppendLine(ask.folder / "attempts.jsonl", line);
}

std::string TimeOfDay() {
  const auto now = std::chrono::system_clock::now();
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
                     ms % 1000);
}

}  // namespace allranks::model
