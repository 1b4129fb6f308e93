// Edits that change a part of an instruction: its order, its scope, its strength, its mask. In the
// source that may be a word of inline assembly, a memory_order, a function's name or volatile.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "remedies/source.h"

namespace allranks::remedies {

// A statement of a source, and the place in it that an edit means.
struct Frame {
  int statement = -1;
  std::size_t offset = 0;
};

struct Replaced {
  std::string text;
  // "release.sys": the change gives no order, or there was no word to change. A fence has to make
  // up for it, as the advice says.
  std::string order;
};

// `frames`: where to look for the part, innermost first.
Result<Replaced> ReplacePart(const nlohmann::json& edit, const Source& source,
                             const std::vector<Frame>& frames);

}  // namespace allranks::remedies
