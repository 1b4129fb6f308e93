// What can be said of a candidate. One word each, the same in JSON, tables and docs/judge.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace allranks::judge {

enum class Verdict : std::uint8_t {
  kPass,
  kWrongResult,
  kRace,
  kDeadlock,
  kMemoryError,
  kCrash,
  kTimeout,
  kCompileError,
  kEditViolation,
  kForbiddenApi,
  kNoCommunication,
  kImpossible,     // faster than the roofline: also an alarm about our model
  kTampering,      // messages that no driver of ours would send
  kUnsupported,    // the node lacks something: not counted against the candidate
  kInternalError,  // our fault
};

const char* NameOf(Verdict verdict);
std::optional<Verdict> VerdictNamed(std::string_view name);

}  // namespace allranks::judge
