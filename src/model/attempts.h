// attempts.jsonl: a line when an attempt begins, before anything is sent, and one when it has
// ended. What each of them cost is counted from these lines, also by processes that come later.
#pragma once

#include <string>

#include "base/result.h"
#include "model/model.h"

namespace allranks::model {

// `line` is a JSON object. Nothing happens where the ask has no folder.
Status NoteAttempt(const Ask& ask, const std::string& line);

// For such lines: UTC with milliseconds, as ISO 8601 has it.
std::string TimeOfDay();

}  // namespace allranks::model
