#include "mutants/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "mutants/seed.h"
#include "problem/source.h"

namespace allranks::mutants {

namespace fs = std::filesystem;

namespace {

Result<std::string> Read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) return Fail("cannot read {}", path.string());
  return text;
}

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

}  // namespace

Result<std::vector<Mutant>> SeedProblems(const fs::path& problems) {
  std::vector<Mutant> all;
  for (const fs::path& path : Sources(problems)) {
    const Result<std::string> source = Read(path);
    if (!source) return Fail(source.error());
    const fs::path name = path.lexically_relative(problems);
    for (Seeded& seeded : Seed(*source)) {
      Mutant mutant{fmt::format("{}:{}:{}", name.string(), seeded.place, seeded.op), "", seeded.op,
                    std::move(seeded.text), path};
      mutant.problem = HomeOf(mutant).filename().string();
      all.push_back(std::move(mutant));
    }
  }
  return all;
}

Result<std::vector<Mutant>> ReadByHand(const fs::path& folder, const fs::path& problems) {
  std::map<std::string, fs::path> homes;  // by slug
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
  for (const fs::path& path : files) {
    const Result<std::string> text = Read(path);
    if (!text) return Fail(text.error());
    const std::string slug = path.parent_path().filename().string();
    Mutant mutant{path.lexically_relative(folder).string(), slug, "by_hand", *text,
                  homes[slug] / "reference.cu"};
    if (path.extension() == ".patch") {
      const std::size_t head = text->find("--- a/");
      if (head == std::string::npos) return Fail("{}: it names no file", path.string());
      mutant.original = homes[slug] / text->substr(head + 6, text->find('\n', head) - head - 6);
      const Result<std::string> source = Read(mutant.original);
      if (!source) return Fail("{}: {}", path.string(), source.error().message);
      Result<std::string> patched = problem::ApplyPatch(*source, text->substr(head));
      if (!patched) return Fail("{}: {}", path.string(), patched.error().message);
      mutant.text = std::move(*patched);
    }
    all.push_back(std::move(mutant));
  }
  return all;
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
