#include "judge/verdict.h"

#include <iterator>

namespace allranks::judge {
namespace {

constexpr const char* kNames[] = {"pass",          "wrong_result",     "race",
                                  "deadlock",      "memory_error",     "crash",
                                  "timeout",       "compile_error",    "edit_violation",
                                  "forbidden_api", "no_communication", "impossible",
                                  "tampering",     "unsupported",      "internal_error"};
static_assert(std::size(kNames) == static_cast<std::size_t>(Verdict::kInternalError) + 1);

}  // namespace

const char* NameOf(Verdict verdict) { return kNames[static_cast<std::size_t>(verdict)]; }

std::optional<Verdict> VerdictNamed(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<Verdict>(i);
  return std::nullopt;
}

}  // namespace allranks::judge
