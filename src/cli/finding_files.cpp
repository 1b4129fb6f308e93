#include "cli/finding_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/words.h"
#include "cli/exec.h"
#include "node/findings.h"

namespace allranks::cli {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;
using node::Finding;
using node::FindingAccess;

constexpr std::array<std::pair<const char*, FindingFormat>, 4> kNames = {
    {{"text", FindingFormat::kText},
     {"json", FindingFormat::kJson},
     {"sarif", FindingFormat::kSarif},
     {"junit", FindingFormat::kJunit}}};

// Strings of a program need not be UTF-8.
std::string Dumped(const json& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string Joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// How a program failed, in a line without its end.
std::string How(const FindingRun::Failure& failure) {
  std::string text = !failure.text.empty()           ? failure.text
                     : failure.code == kExitDeadlock ? "deadlock"
                                                     : fmt::format("exit code {}", failure.code);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// --- SARIF -------------------------------------------------------------------------------------

// The folder of the repository that a file is in; empty: none.
fs::path RepositoryOf(const fs::path& file) {
  std::error_code error;
  for (fs::path folder = file.parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (fs::exists(folder / ".git", error)) return folder;
  return {};
}

std::string Escaped(const std::string& path) {
  std::string uri;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("/-_.~+").find(c) != std::string::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

// Code hosts know files by their path in the repository. Others are below the current folder, or
// absolute.
json Artifact(const std::string& name, std::string* root) {
  std::error_code error;
  const fs::path file = fs::absolute(name, error).lexically_normal();
  fs::path base = RepositoryOf(file);
  if (base.empty()) base = fs::current_path(error);
  const std::string relative = file.lexically_relative(base).string();
  if (relative.empty() || relative.starts_with("..") || (!root->empty() && *root != base))
    return {{"uri", "file://" + Escaped(file.string())}};
  *root = base.string();
  return {{"uri", Escaped(relative)}, {"uriBaseId", "SRCROOT"}};
}

json Location(const std::string& file, int line, const std::string& kernel,
              const std::string& message, std::string* root) {
  json location = {{"physicalLocation",
                    {{"artifactLocation", Artifact(file, root)},
                     {"region", {{"startLine", std::max(line, 1)}}}}}};
  if (!kernel.empty())
    location["logicalLocations"] = {{{"fullyQualifiedName", kernel}, {"kind", "function"}}};
  if (!message.empty()) location["message"] = {{"text", message}};
  return location;
}

// Without lines: the program itself, since a result without a place is not shown anywhere.
json LocationOf(const FindingAccess& access, const FindingRun& run, std::string* root) {
  std::string file = access.file;
  int line = access.line;
  if (file.empty() && access.kernel.empty() && !access.site.frames.empty()) {
    file = access.site.frames[0].file;
    line = access.site.frames[0].line;
  }
  if (file.empty()) {
    file = run.command.empty() ? "program" : run.command.front();
    line = 1;
  }
  return Location(file, line, access.kernel, node::Describe(access), root);
}

const char* LevelOf(const ListedFinding& listed) { return listed.counts ? "error" : "note"; }

// --- JUnit -------------------------------------------------------------------------------------

std::string Xml(const std::string& text) {
  // Paths and names of a program need not be UTF-8, the file is.
  const std::string valid = json::parse(Dumped(text)).get<std::string>();
  std::string out;
  for (const char c : EscapedMarkup(valid)) {
    if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
    } else if (c == '\n') {
      out += "&#10;";
    } else {
      out += c == '\t' ? ' ' : '?';  // XML 1.0 has no others, however they are written
    }
  }
  return out;
}

}  // namespace

std::optional<FindingFormat> FormatNamed(std::string_view name) {
  for (const auto& [known, format] : kNames)
    if (name == known) return format;
  return std::nullopt;
}

FindingFormat FormatOfFile(std::string_view path) {
  if (path.ends_with(".sarif") || path.ends_with(".sarif.json")) return FindingFormat::kSarif;
  if (path.ends_with(".xml")) return FindingFormat::kJunit;
  if (path.ends_with(".txt")) return FindingFormat::kText;
  return FindingFormat::kJson;
}

std::string FindingsAsJson(const FindingRun& run, const std::vector<ListedFinding>& findings) {
  std::vector<Finding> plain;
  for (const ListedFinding& listed : findings) plain.push_back(listed.finding);
  json all = json::parse(node::ToJson(plain));
  for (std::size_t i = 0; i < findings.size(); ++i) {
    all[i]["id"] = findings[i].id;
    all[i]["counts"] = findings[i].counts;
    all[i]["suppressed"] = findings[i].suppressed;
  }
  json failed = json::array();
  for (const FindingRun::Failure& failure : run.failures)
    failed.push_back({{"schedule", failure.schedule}, {"code", failure.code}});
  return Dumped({{"version", 1},
                 {"schedule", run.schedules.front()},
                 {"schedules", run.schedules},
                 {"failures", failed},
                 {"findings", all}});
}

std::string FindingsAsSarif(const FindingRun& run, const std::vector<ListedFinding>& findings) {
  std::string root;
  json rules = json::array(), results = json::array();
  const auto rule = [&](const std::string& id, const std::string& about) {
    for (std::size_t i = 0; i < rules.size(); ++i)
      if (rules[i]["id"] == id) return i;
    rules.push_back({{"id", id}, {"shortDescription", {{"text", about}}}});
    return rules.size() - 1;
  };
  for (const ListedFinding& listed : findings) {
    const Finding& finding = listed.finding;
    std::string message = finding.text + ".";
    if (!finding.missing.empty()) message += fmt::format(" Missing: {}.", finding.missing);
    if (!finding.advice.empty()) message += fmt::format(" Remedy: {}.", finding.advice);
    json related = json::array();
    for (std::size_t i = 1; i < finding.accesses.size(); ++i) {
      related.push_back(LocationOf(finding.accesses[i], run, &root));
      related.back()["id"] = i;
    }
    const std::string kind = node::NameOf(finding.kind);
    json result = {{"ruleId", kind},
                   {"ruleIndex", rule(kind, node::About(finding.kind))},
                   {"level", LevelOf(listed)},
                   {"message", {{"text", message}}},
                   {"locations", {LocationOf(finding.accesses.front(), run, &root)}},
                   {"partialFingerprints", {{"allranks/v1", listed.id}}},
                   {"occurrenceCount", finding.count}};
    if (!related.empty()) result["relatedLocations"] = related;
    if (listed.suppressed)
      result["suppressions"] = {{{"kind", "external"}, {"status", "accepted"}}};
    results.push_back(std::move(result));
  }
  for (const FindingRun::Failure& failure : run.failures) {
    const bool deadlock = failure.code == kExitDeadlock;
    const std::string id = deadlock ? "deadlock" : "exit_code";
    results.push_back({{"ruleId", id},
                       {"ruleIndex", rule(id, deadlock ? "all threads wait for each other"
                                                       : "the program failed")},
                       {"level", "error"},
                       {"message", {{"text", How(failure)}}},
                       {"locations", {LocationOf({}, run, &root)}}});
  }
  json done = {
      {"tool", {{"driver", {{"name", "AllRanks"}, {"version", run.version}, {"rules", rules}}}}},
      {"invocations",
       {{{"commandLine", Joined(run.command)},
         {"executionSuccessful", run.failures.empty()},
         {"exitCode", run.code}}}}};
  if (!root.empty())
    done["originalUriBaseIds"] = {{"SRCROOT", {{"uri", "file://" + Escaped(root) + "/"}}}};
  done["results"] = std::move(results);
  return Dumped({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                 {"version", "2.1.0"},
                 {"runs", json::array({std::move(done)})}});
}

std::string FindingsAsJunit(const FindingRun& run, const std::vector<ListedFinding>& findings) {
  const std::string program = run.command.empty() ? "" : run.command.front();
  std::string cases;
  std::size_t tests = 0, failures = 0;
  const auto add = [&](const std::string& name, const std::string& kind, const std::string& message,
                       const std::string& text) {
    ++tests;
    cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", Xml(program), Xml(name));
    if (kind.empty()) {
      cases += "/>\n";
      return;
    }
    ++failures;
    cases +=
        fmt::format(">\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
                    Xml(kind), Xml(message), Xml(text));
  };
  for (const FindingRun::Failure& failure : run.failures)
    add(fmt::format("run under schedule {}", failure.schedule),
        failure.code == kExitDeadlock ? "deadlock" : "exit_code",
        How(failure).substr(0, How(failure).find('\n')), How(failure));
  for (const ListedFinding& listed : findings) {
    if (!listed.counts) continue;
    const FindingAccess& access = listed.finding.accesses.front();
    const std::string kind = node::NameOf(listed.finding.kind);
    const std::string where =
        access.file.empty() ? access.kernel : fmt::format("{}:{}", access.file, access.line);
    add(fmt::format("{} {} {}", kind, listed.id, where), kind, listed.finding.text,
        node::Describe(listed.finding));
  }
  if (tests == 0) add("no findings", "", "", "");
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite name=\"allranks exec --check\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n{}"
      "  </testsuite>\n</testsuites>\n",
      tests, failures, cases);
}

}  // namespace allranks::cli
