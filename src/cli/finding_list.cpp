// See finding_list.h.
#include "cli/finding_list.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/words.h"
#include "node/findings.h"

namespace allranks::cli {
namespace {

bool Fits(const std::string& glob, const std::string& text) {
  return fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

bool FitsAny(const std::vector<std::string>& globs, const node::Finding& finding,
             std::string node::FindingAccess::* member) {
  if (globs.empty()) return true;
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    return std::any_of(finding.accesses.begin(), finding.accesses.end(),
                       [&](const node::FindingAccess& access) {
                         return !(access.*member).empty() && Fits(glob, access.*member);
                       });
  });
}

bool Has(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Without what surrounds it and without runs of blanks: formatting does not change an id.
std::string Squeezed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\r';
    if (!blank) out += c;
    if (blank && !out.empty() && out.back() != ' ') out += ' ';
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// FNV-1a.
void Mix(std::string_view text, std::uint64_t* hash) {
  for (const char c : text) *hash = (*hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  *hash = (*hash ^ 0xff) * 0x100000001b3u;
}

// "Exchange(int)" of "Exchange(int)+0x1c".
std::string_view WithoutAddress(std::string_view function) {
  return function.substr(0, function.rfind("+0x"));
}

std::string BaseName(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

}  // namespace

Result<FindingList> FindingList::Make(const FindingOptions& options) {
  FindingList list;
  list.options_ = options;
  for (const auto* names : {&options.only, &options.also})
    for (const std::string& name : *names)
      if (!node::KindNamed(name))
        return Fail("unknown kind of finding '{}'{}; docs/checker.md lists the kinds", name,
                    DidYouMean(name, node::KindNames()));
  if (options.suppress.empty()) return list;
  std::ifstream file(options.suppress);
  if (!file) return Fail("cannot read {}", options.suppress);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    Pattern pattern;
    std::string what, more;
    if (!(words >> pattern.kind)) continue;
    if (!(words >> what) || (words >> more))
      return Fail("{}:{}: expected a kind and an id, kernel:GLOB or file:GLOB", options.suppress,
                  number);
    if (pattern.kind != "*" && !node::KindNamed(pattern.kind))
      return Fail("{}:{}: unknown kind of finding '{}'{}", options.suppress, number, pattern.kind,
                  DidYouMean(pattern.kind, node::KindNames()));
    if (what.starts_with("kernel:")) {
      pattern.kernel = what.substr(7);
    } else if (what.starts_with("file:")) {
      pattern.file = what.substr(5);
    } else if (const std::size_t colon = what.find(':'); colon != std::string::npos) {
      return Fail("{}:{}: '{}:' is none of kernel: and file:{}", options.suppress, number,
                  what.substr(0, colon), DidYouMean(what.substr(0, colon), {"kernel", "file"}));
    } else {
      pattern.id = what;
    }
    list.patterns_.push_back(std::move(pattern));
  }
  return list;
}

void FindingList::Add(std::vector<node::Finding> findings) {
  node::Fold(std::move(findings), &findings_);
}

bool FindingList::Chosen(const node::Finding& finding) const {
  return (options_.only.empty() || Has(options_.only, node::NameOf(finding.kind))) &&
         FitsAny(options_.kernels, finding, &node::FindingAccess::kernel) &&
         FitsAny(options_.files, finding, &node::FindingAccess::file);
}

bool FindingList::Suppressed(const node::Finding& finding) const {
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const Pattern& pattern) {
    if (pattern.kind != "*" && pattern.kind != node::NameOf(finding.kind)) return false;
    if (!pattern.kernel.empty())
      return FitsAny({pattern.kernel}, finding, &node::FindingAccess::kernel);
    if (!pattern.file.empty()) return FitsAny({pattern.file}, finding, &node::FindingAccess::file);
    return pattern.id == IdOf(finding);
  });
}

bool FindingList::Counts(const node::Finding& finding) const {
  return Chosen(finding) && !Suppressed(finding) &&
         (node::Counts(finding) || Has(options_.also, node::NameOf(finding.kind)));
}

std::size_t FindingList::counted() const {
  return static_cast<std::size_t>(
      std::count_if(findings_.begin(), findings_.end(),
                    [&](const node::Finding& finding) { return Counts(finding); }));
}

bool FindingList::OnlySummed(const node::Finding& finding) const {
  return finding.kind == node::Finding::Kind::kLeak && !Counts(finding) &&
         options_.leaks != FindingOptions::Leaks::kFull;
}

std::string FindingList::SourceLine(const std::string& file, int line) const {
  const auto [at, made] = sources_.try_emplace(file);
  if (made) {
    std::ifstream stream(file);
    for (std::string text; std::getline(stream, text);) at->second.push_back(std::move(text));
  }
  const auto index = static_cast<std::size_t>(line - 1);
  return line > 0 && index < at->second.size() ? at->second[index] : std::to_string(line);
}

std::string FindingList::IdOf(const node::Finding& finding) const {
  std::uint64_t hash = 0xcbf29ce484222325u;
  Mix(node::NameOf(finding.kind), &hash);
  for (const node::FindingAccess& access : finding.accesses) {
    Mix(access.what, &hash);
    Mix(access.kernel, &hash);
    Mix(BaseName(access.file), &hash);
    Mix(access.file.empty() ? access.form : Squeezed(SourceLine(access.file, access.line)), &hash);
    // Without lines a function tells host calls apart, but not its addresses.
    if (access.kernel.empty() && access.file.empty() && !access.site.frames.empty())
      Mix(WithoutAddress(access.site.frames[0].function), &hash);
  }
  return fmt::format("{:08x}", static_cast<std::uint32_t>(hash ^ hash >> 32));
}

std::string FindingList::Text(std::string_view checked) const {
  std::string text;
  std::vector<node::Finding> shown;
  std::size_t suppressed = 0, left_out = 0, hidden = 0;
  std::string leaks;
  bool without_lines = false, host_without_lines = false;
  for (const node::Finding& finding : findings_) {
    if (!Chosen(finding)) {
      ++left_out;
      continue;
    }
    if (Suppressed(finding)) {
      ++suppressed;
      continue;
    }
    if (OnlySummed(finding)) {
      if (options_.leaks == FindingOptions::Leaks::kNo) continue;
      leaks += fmt::format("{}{}", leaks.empty() ? "" : "; ", finding.text);
      continue;
    }
    shown.push_back(finding);
    if (shown.size() > options_.most) {
      ++hidden;
      continue;
    }
    text += node::Describe(finding);
    if (finding.schedule != 0)
      text += fmt::format("  first seen under schedule {0} (--schedule {0} repeats it)\n",
                          finding.schedule);
    const node::FindingAccess& first = finding.accesses.front();
    const std::string where =
        first.file.empty() ? first.kernel : fmt::format("{}:{}", BaseName(first.file), first.line);
    text += fmt::format("  suppress: {} {}{}\n", node::NameOf(finding.kind), IdOf(finding),
                        where.empty() ? "" : "  # " + where);
    for (const node::FindingAccess& access : finding.accesses) {
      without_lines |= !access.kernel.empty() && access.file.empty();
      host_without_lines |= access.kernel.empty() && access.file.empty() && access.site.known();
    }
  }
  if (hidden != 0)
    text += fmt::format("and {} more: --max-findings {} prints them\n", hidden, shown.size());
  if (without_lines)
    text += "allranks: some kernels have no source lines: compile them with nvcc -lineinfo\n";
  if (host_without_lines)
    text += "allranks: some host code has no source lines: compile it with -g\n";
  if (!leaks.empty()) text += fmt::format("leak: {} (--leaks full says where)\n", leaks);
  std::string summary = node::Summary(shown);
  if (suppressed != 0) summary += fmt::format(", {} suppressed", suppressed);
  if (left_out != 0) summary += fmt::format(", {} filtered out", left_out);
  text += fmt::format("allranks: {}", summary);
  if (!checked.empty()) text += fmt::format(" ({})", checked);
  return text + "\n";
}

std::vector<ListedFinding> FindingList::Listed() const {
  std::vector<ListedFinding> listed;
  for (const node::Finding& finding : findings_)
    listed.push_back({finding, IdOf(finding), Counts(finding), Suppressed(finding)});
  return listed;
}

}  // namespace allranks::cli
