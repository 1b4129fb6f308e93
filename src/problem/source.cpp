// Template, region, candidate.
#include "problem/source.h"
#include "base/files.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "problem/args.h"

namespace allranks::problem {
namespace {

constexpr std::string_view kBegin = "// >>> edit";
constexpr std::string_view kEnd = "// <<< edit";
constexpr std::string_view kBlank = " \t\n\v\f";

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string_view TrimEnd(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

// Takes one line off the front, with its newline.
std::string_view TakeLine(std::string_view* text) {
  const std::size_t end = text->find('\n');
  const std::string_view line = text->substr(0, end == std::string_view::npos ? end : end + 1);
  text->remove_prefix(line.size());
  return line;
}

// A text's places of begin and end markers, as offsets of their lines.
struct Markers {
  std::vector<std::size_t> begins, ends;
};

Markers FindMarkers(std::string_view text) {
  Markers markers;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t at = text.size() - rest.size();
    const std::string_view line = Trim(TakeLine(&rest));
    if (line == kBegin) markers.begins.push_back(at);
    if (line == kEnd) markers.ends.push_back(at);
  }
  return markers;
}

// Lines end in \n. A lone \r and NUL hide text from people, so they are refused.
Result<std::string> Normalise(std::string_view text) {
  if (text.size() > kLargestSource)
    return Fail("the file has {} bytes; the limit is {}", text.size(), kLargestSource);
  std::string clean;
  clean.reserve(text.size() + 1);
  int line = 1;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\0') return Fail("line {} has a NUL byte", line);
    if (c == '\r') {
      if (i + 1 < text.size() && text[i + 1] == '\n') continue;
      return Fail("line {} contains a carriage return before its end", line);
    }
    if (c == '\n') ++line;
    clean += c;
  }
  if (!clean.empty() && clean.back() != '\n') clean += '\n';
  return clean;
}

int CountLines(std::string_view text) {
  int lines = 0;
  for (const char c : text) lines += c == '\n';
  return lines;
}

}  // namespace

Result<std::string> ReadFile(const std::filesystem::path& path, std::size_t limit) {
  return ReadWhole(path, limit);
}

Result<Region> SplitTemplate(std::string_view text) {
  auto clean = Normalise(text);
  if (!clean) return Fail(clean.error());
  const Markers markers = FindMarkers(*clean);
  if (markers.begins.size() != 1 || markers.ends.size() != 1 ||
      markers.begins[0] > markers.ends[0]) {
    return Fail("expected one line '{}' and after it one line '{}'", kBegin, kEnd);
  }
  std::string_view rest = std::string_view(*clean).substr(markers.begins[0]);
  TakeLine(&rest);
  const std::size_t inside = clean->size() - rest.size();
  Region region;
  region.before = clean->substr(0, inside);
  region.inside = clean->substr(inside, markers.ends[0] - inside);
  region.after = clean->substr(markers.ends[0]);
  region.first_line = CountLines(region.before) + 1;
  rest = region.after;
  TakeLine(&rest);
  if (!Trim(rest).empty()) {
    return Fail("line {}: nothing may follow '{}'",
                region.first_line + CountLines(region.inside) + 1, kEnd);
  }
  return region;
}

Result<std::string> Assemble(const Region& region, std::string_view candidate) {
  auto clean = Normalise(candidate);
  if (!clean) return Fail(clean.error());
  const Markers markers = FindMarkers(*clean);
  if (markers.begins.empty() && markers.ends.empty()) return region.before + *clean + region.after;
  if (markers.begins.size() != 1 || markers.ends.size() != 1 ||
      markers.begins[0] > markers.ends[0]) {
    return Fail("the markers '{}' and '{}' must occur once each, in this order", kBegin, kEnd);
  }
  // Blanks at line ends are what editors change unasked, and mean nothing to a compiler there: the
  // text that is compiled is the template's own.
  std::string_view theirs = *clean, ours = region.before;
  for (int line = 1; !ours.empty(); ++line) {
    const std::string_view own = TrimEnd(TakeLine(&ours));
    const std::string_view other = TrimEnd(TakeLine(&theirs));
    if (own != other)
      return Fail("line {} is outside of the edit region: expected '{}', found '{}'", line, own,
                  other);
  }
  const std::size_t inside = clean->size() - theirs.size();
  if (inside > markers.ends[0])
    return Fail("the markers '{}' and '{}' must occur once each, in this order", kBegin, kEnd);
  std::string_view after = std::string_view(*clean).substr(markers.ends[0]);
  TakeLine(&after);
  if (!Trim(after).empty()) return Fail("nothing may follow '{}'", kEnd);
  return region.before + clean->substr(inside, markers.ends[0] - inside) + region.after;
}

Result<std::string> TemplateOf(const Problem& problem) {
  const std::filesystem::path own = problem.folder / "template.cu";
  std::error_code error;
  if (std::filesystem::exists(own, error)) return ReadFile(own);
  std::string text = fmt::format("// {}\n#include \"problem.h\"\n", problem.title);
  for (const std::string& header : problem.given)
    text += fmt::format("#include <allranks/{}>\n", header);
  text += fmt::format("\n{}\n", kBegin);
  for (const std::string& declaration : Declarations(problem))
    text += fmt::format("{} {{\n{}}}\n", declaration,
                        problem.window == Window::kQuery ? "  return 0;\n" : "");
  return text + fmt::format("{}\n", kEnd);
}

Result<Region> RegionOf(const Problem& problem) {
  const Result<std::string> form = TemplateOf(problem);
  if (!form) return Fail(form.error());
  Result<Region> region = SplitTemplate(*form);
  if (!region) return Fail("{}: template.cu: {}", problem.slug, region.error().message);
  return region;
}

Result<std::string> SolutionOf(const Problem& problem, const std::filesystem::path& name) {
  const Result<Region> region = RegionOf(problem);
  if (!region) return Fail(region.error());
  const Result<std::string> text = ReadFile(problem.folder / name);
  if (!text) return Fail(text.error());
  return Assemble(*region, *text);
}

Result<std::string> MutantOf(const Problem& problem, const Mutant& mutant) {
  const Result<std::string> solution = SolutionOf(problem, mutant.of);
  if (!solution) return Fail(solution.error());
  return Mutate(problem, mutant, *solution);
}

Result<std::string> Mutate(const Problem& problem, const Mutant& mutant, std::string_view text) {
  if (!mutant.replace.empty()) {
    const std::size_t at = text.find(mutant.replace);
    if (at == std::string_view::npos)
      return Fail("{} does not contain '{}'", mutant.of, mutant.replace);
    if (text.find(mutant.replace, at + 1) != std::string_view::npos)
      return Fail("{} contains '{}' more than once", mutant.of, mutant.replace);
    return std::string(text).replace(at, mutant.replace.size(), mutant.with);
  }
  if (mutant.patch.empty()) return ApplyOperator(text, mutant.tag, mutant.op);
  const auto patch = ReadFile(problem.folder / "mutants" / mutant.patch);
  if (!patch) return Fail(patch.error());
  auto patched = ApplyPatch(text, *patch);
  if (!patched) return Fail("mutants/{}: {}", mutant.patch, patched.error().message);
  return patched;
}

}  // namespace allranks::problem
