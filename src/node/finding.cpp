// Names and text of findings; see finding.h.
#include "node/finding.h"

#include <fmt/format.h>

#include <array>

namespace allranks::node {
namespace {

using Kind = Finding::Kind;
using Class = FindingClass;

struct Row {
  const char* name;
  FindingClass of;
  const char* about;
};

constexpr std::array<Row, 15> kRows = {{
    {"race", Class::kRace, "two accesses to the same bytes, one a write, that nothing orders"},
    {"scope", Class::kRace, "two strong accesses whose scopes leave out each other's thread"},
    {"proxy", Class::kRace,
     "a bulk copy and an ordinary access without a proxy fence between them"},
    {"portability", Class::kPortability, "the program relies on more than PTX guarantees"},
    {"uninitialised", Class::kMemory, "a load of bytes that were never written"},
    {"out_of_bounds", Class::kMemory, "an access outside its allocation or array"},
    {"use_after_free", Class::kMemory, "an access to freed memory"},
    {"not_mapped", Class::kMemory, "an access to an address that is not mapped"},
    {"misaligned", Class::kMemory, "an access to an address that is not aligned"},
    {"leak", Class::kLeak, "memory that is left when its process ends"},
    {"barrier", Class::kSynchronisation, "a barrier that threads reach in part or differently"},
    {"mbarrier", Class::kSynchronisation, "misuse of an mbarrier"},
    {"warp_mask", Class::kSynchronisation, "a warp-wide operation whose mask does not fit"},
    {"weak_spin", Class::kSynchronisation, "a loop that waits with weak loads"},
    {"api_error", Class::kApi, "a function of CUDA's that returned an error"},
}};

const Row& RowOf(Kind kind) { return kRows[static_cast<std::size_t>(kind)]; }

// "a.cu:12 (called at a.cu:40, main.cu:7)".
std::string Where(const HostSite& site) {
  std::string text = site.Place();
  for (std::size_t i = 1; i < site.frames.size(); ++i)
    text += (i == 1 ? " (called at " : ", ") + site.frames[i].Place();
  return site.frames.size() > 1 ? text + ")" : text;
}

}  // namespace

std::string Who(const FindingAccess& access) {
  if (access.alone && access.device >= 0)
    return fmt::format("device {}'s {}", access.device, access.what);
  if (access.alone || access.rank < 0) return access.what;
  return fmt::format("rank {}'s {}", access.rank, access.what);
}

std::string Describe(const FindingAccess& access) {
  std::string line = access.what;
  if (!access.form.empty()) line += fmt::format(" ({})", access.form);
  if (access.bytes != 0) line += fmt::format(" of {} bytes", access.bytes);
  if (!access.object.empty()) line += fmt::format(" at {} + {}", access.object, access.offset);
  if (access.rank >= 0 && !access.alone) line += fmt::format(", rank {}", access.rank);
  if (access.device >= 0) line += fmt::format(", device {}", access.device);
  if (!access.kernel.empty()) {
    line += fmt::format(", {}, block ({},{},{}), thread {}", access.kernel, access.block.x,
                        access.block.y, access.block.z, access.thread);
  }
  if (!access.kernel.empty() || access.site.frames.empty()) {
    if (!access.file.empty()) line += fmt::format(", {}:{}", access.file, access.line);
    if (!access.inlined_at.empty()) line += fmt::format(" (inlined at {})", access.inlined_at);
  }
  const bool lines = !access.site.frames.empty() && !access.site.frames[0].file.empty();
  if (!access.kernel.empty()) {
    if (lines) line += fmt::format("; launched in {} at {}", access.stream, Where(access.site));
    return line;
  }
  if (!access.site.call.empty()) line += ", " + access.site.call;
  if (!access.stream.empty()) line += " in " + access.stream;
  if (!access.site.frames.empty()) line += " at " + Where(access.site);
  return line;
}

namespace {

// "cudaMalloc at a.cu:12".
std::string By(const HostSite& site) {
  if (site.frames.empty()) return site.call;
  return fmt::format("{} at {}", site.call.empty() ? "the host" : site.call, Where(site));
}

}  // namespace

const char* NameOf(Kind kind) { return RowOf(kind).name; }

std::optional<Kind> KindNamed(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (name == kRows[i].name) return static_cast<Kind>(i);
  return std::nullopt;
}

std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  for (const auto& row : kRows) names.emplace_back(row.name);
  return names;
}

const char* NameOf(Edit::Action action) {
  static constexpr const char* kNames[] = {"insert_before", "insert_after", "replace", "move_after",
                                           "hoist"};
  return kNames[static_cast<int>(action)];
}

const char* NameOf(Edit::By by) {
  static constexpr const char* kNames[] = {"thread", "warp", "block", "grid", "host"};
  return kNames[static_cast<int>(by)];
}

FindingClass ClassOf(Kind kind) { return RowOf(kind).of; }
const char* About(Kind kind) { return RowOf(kind).about; }

std::string Describe(const Finding& finding) {
  std::string text = fmt::format("{}: {}\n", NameOf(finding.kind), finding.text);
  for (const FindingAccess& access : finding.accesses) text += "  " + Describe(access) + "\n";
  for (std::size_t i = 0; i < finding.accesses.size(); ++i) {
    const FindingAccess& access = finding.accesses[i];
    const bool told = i > 0 && finding.accesses[i - 1].object == access.object;
    if (access.allocated.known() && !told)
      text += fmt::format("  {} was allocated by {}\n", access.object, By(access.allocated));
    if (access.freed.known()) text += fmt::format("  freed by {}\n", By(access.freed));
  }
  if (!finding.missing.empty()) text += "  missing: " + finding.missing + "\n";
  if (!finding.advice.empty()) text += "  remedy:  " + finding.advice + "\n";
  if (finding.pairs > 1) {
    text += fmt::format("  also between {} other pair{} of places", finding.pairs - 1,
                        finding.pairs == 2 ? "" : "s");
    for (std::size_t i = 0; i < finding.also.size(); ++i)
      text += fmt::format("{} {} and {}", i == 0 ? ":" : ";", finding.also[i].later,
                          finding.also[i].earlier);
    text += finding.also.size() + 1 < finding.pairs ? "; ...\n" : "\n";
  }
  if (finding.count > 1) text += fmt::format("  seen {} times\n", finding.count);
  return text;
}

}  // namespace allranks::node
