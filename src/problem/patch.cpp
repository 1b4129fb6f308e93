// Unified diffs, applied exactly: a hunk's old lines must stand in the text, at the place that it
// names or, if the text has grown or shrunk since, at the one nearest to it.
#include <charconv>
#include <cstdlib>

#include "problem/source.h"

namespace allranks::problem {
namespace {

struct Hunk {
  std::int64_t line = 1;  // in the old text, from 1
  std::vector<std::string> old_lines, new_lines;
};

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
  }
  return lines;
}

// "@@ -12,7 +12,6 @@": only the old line's number is used; how many lines follow is what they say.
bool ReadPlace(std::string_view line, std::int64_t* out) {
  if (!line.starts_with("@@ -")) return false;
  line.remove_prefix(4);
  return std::from_chars(line.data(), line.data() + line.size(), *out).ec == std::errc();
}

Result<std::vector<Hunk>> ReadHunks(std::string_view patch) {
  std::vector<Hunk> hunks;
  int number = 0;
  for (const std::string& line : Lines(patch)) {
    ++number;
    if (line.starts_with("@@")) {
      if (!ReadPlace(line, &hunks.emplace_back().line))
        return Fail("line {}: '{}' is not a hunk header such as '@@ -12,7 +12,6 @@'", number, line);
    } else if (!hunks.empty() && !line.starts_with('\\')) {
      const char what = line.empty() ? ' ' : line[0];
      const std::string rest = line.empty() ? "" : line.substr(1);
      if (what != ' ' && what != '-' && what != '+')
        return Fail("line {}: '{}' does not start with a blank, - or +", number, line);
      if (what != '+') hunks.back().old_lines.push_back(rest);
      if (what != '-') hunks.back().new_lines.push_back(rest);
    }
  }
  if (hunks.empty()) return Fail("the patch has no hunk");
  return hunks;
}

bool FitsAt(const std::vector<std::string>& lines, const std::vector<std::string>& wanted,
            std::int64_t at) {
  if (at < 0 ||
      at + static_cast<std::int64_t>(wanted.size()) > static_cast<std::int64_t>(lines.size()))
    return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (lines[static_cast<std::size_t>(at) + i] != wanted[i]) return false;
  }
  return true;
}

}  // namespace

Result<std::string> ApplyPatch(std::string_view text, std::string_view patch) {
  const auto hunks = ReadHunks(patch);
  if (!hunks) return Fail(hunks.error());
  std::vector<std::string> lines = Lines(text);
  std::int64_t shift = 0;  // by which earlier hunks have moved what follows
  for (const Hunk& hunk : *hunks) {
    if (hunk.old_lines == hunk.new_lines)
      return Fail("the hunk of line {} changes nothing", hunk.line);
    if (hunk.old_lines.empty()) return Fail("the hunk of line {} has no context lines", hunk.line);
    const std::int64_t wanted = hunk.line - 1 + shift;
    const auto size = static_cast<std::int64_t>(lines.size());
    std::int64_t at = -1;
    for (std::int64_t off = 0; at < 0 && off <= size; ++off) {
      if (FitsAt(lines, hunk.old_lines, wanted - off)) {
        at = wanted - off;
      } else if (FitsAt(lines, hunk.old_lines, wanted + off)) {
        at = wanted + off;
      }
    }
    if (at < 0)
      return Fail(
          "the hunk of line {} does not apply: the file does not have its lines, the first is '{}'",
          hunk.line, hunk.old_lines[0]);
    lines.erase(lines.begin() + at,
                lines.begin() + at + static_cast<std::int64_t>(hunk.old_lines.size()));
    lines.insert(lines.begin() + at, hunk.new_lines.begin(), hunk.new_lines.end());
    shift = at + 1 - hunk.line + static_cast<std::int64_t>(hunk.new_lines.size()) -
            static_cast<std::int64_t>(hunk.old_lines.size());
  }
  std::string out;
  for (const std::string& line : lines) out += line + '\n';
  return out;
}

}  // namespace allranks::problem
