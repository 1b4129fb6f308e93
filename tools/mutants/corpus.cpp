// See corpus.h.
#include "mutants/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/files.h"
#include "mutants/seed.h"
#include "problem/source.h"

namespace allranks::mutants {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> Sources(const fs::path& problems) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(problems)) {
    const fs::path& path = entry.path();
    if (path.filename() == "reference.cu" ||
        (path.extension() == ".cu" && path.parent_path().filename() == "alternates"))
      found.push_back(path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The words behind `// KEY: ` among the comments at the top, which stand in front of a patch.
std::vector<std::string> Header(const std::string& text, const std::string& key, char between) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && line.starts_with("//");) {
    if (!line.starts_with("// " + key + ": ")) continue;
    std::istringstream rest(line.substr(key.size() + 5));
    std::vector<std::string> words;
    for (std::string word; std::getline(rest, word, between);)
      if (!word.empty()) words.push_back(word);
    return words;
  }
  return {};
}

// One of those by hand, applied to what it changes.
Result<Mutant> ReadOne(const fs::path& path, const std::string& slug, const fs::path& home) {
  const Result<std::string> text = ReadWhole(path);
  if (!text) return Fail(text.error());
  Mutant mutant{slug + "/" + path.filename().string(),
                slug,
                kByHand,
                *text,
                home / "reference.cu",
                Header(*text, "run", ' '),
                Header(*text, "expect", '|')};
  if (path.extension() == ".patch") {
    const std::size_t head = text->find("--- a/");
    if (head == std::string::npos) return Fail("it names no file");
    mutant.original = home / text->substr(head + 6, text->find('\n', head) - head - 6);
    const Result<std::string> source = ReadWhole(mutant.original);
    if (!source) return Fail(source.error());
    Result<std::string> patched = problem::ApplyPatch(*source, text->substr(head));
    if (!patched) return Fail(patched.error());
    mutant.text = std::move(*patched);
  } else if (IsProgram(mutant)) {
    return Fail("a program is changed by a patch");
  } else {
    const Result<problem::Region> region = RegionAt(home);
    if (!region) return Fail(region.error());
    const Result<std::string> assembled = problem::Assemble(*region, *text);
    if (!assembled) return Fail(assembled.error());
  }
  return mutant;
}

}  // namespace

Result<problem::Region> RegionAt(const fs::path& home) {
  const Result<problem::Problem> problem = problem::Load(home);
  if (!problem) return Fail(problem.error());
  return problem::RegionOf(*problem);
}

Result<std::vector<Mutant>> SeedProblems(const fs::path& problems, const fs::path& by_hand) {
  std::vector<Mutant> all;
  for (const fs::path& path : Sources(problems)) {
    const fs::path name = path.lexically_relative(problems);
    if (!fs::exists(by_hand / *std::next(name.begin()))) continue;
    const Result<std::string> source = ReadWhole(path);
    if (!source) return Fail(source.error());
    const Result<problem::Region> region =
        RegionAt(problems / *name.begin() / *std::next(name.begin()));
    if (!region) return Fail(region.error());
    for (Seeded& seeded : Seed(*source, region->before)) {
      Mutant mutant{fmt::format("{}:{}:{}", name.string(), seeded.place, seeded.op),
                    "",
                    seeded.op,
                    std::move(seeded.text),
                    path,
                    {},
                    {}};
      mutant.problem = HomeOf(mutant).filename().string();
      all.push_back(std::move(mutant));
    }
  }
  return all;
}

Result<std::vector<Mutant>> ReadByHand(const fs::path& folder, const fs::path& problems,
                                       const fs::path& programs) {
  std::map<std::string, fs::path> homes = {{kPrograms, programs}};  // by slug
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(problems)) {
    if (entry.path().filename() == "problem.toml")
      homes[entry.path().parent_path().filename().string()] = entry.path().parent_path();
  }
  std::vector<fs::path> files;
  for (const auto& [slug, home] : homes) {
    std::error_code none;  // nobody has written any for this problem
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / slug, none))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());

  std::vector<Mutant> all;
  std::string faults;
  for (const fs::path& path : files) {
    const std::string slug = path.parent_path().filename().string();
    Result<Mutant> mutant = ReadOne(path, slug, homes[slug]);
    if (mutant) {
      all.push_back(std::move(*mutant));
    } else {
      faults += fmt::format("{}{}: {}", faults.empty() ? "" : "\n",
                            path.lexically_relative(folder).string(), mutant.error().message);
    }
  }
  if (!faults.empty()) return Fail("{}", faults);
  return all;
}

Result<Mutant> OriginalOf(const Mutant& mutant) {
  Result<std::string> text = ReadWhole(mutant.original);
  if (!text) return Fail(text.error());
  Mutant original = mutant;
  original.id = mutant.original.string();
  original.text = std::move(*text);
  return original;
}

fs::path HomeOf(const Mutant& mutant) {
  const fs::path folder = mutant.original.parent_path();
  return folder.filename() == "alternates" ? folder.parent_path() : folder;
}

Result<std::map<std::string, std::string>> ReadEquivalent(const fs::path& file) {
  std::ifstream in(file);
  if (!in) return Fail("cannot read {}", file.string());
  std::map<std::string, std::string> reasons;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos || tab + 1 == line.size())
      return Fail("{}:{}: give an id, a tab and the reason", file.string(), number);
    if (!reasons.emplace(line.substr(0, tab), line.substr(tab + 1)).second)
      return Fail("{}:{}: named twice", file.string(), number);
  }
  return reasons;
}

}  // namespace allranks::mutants
