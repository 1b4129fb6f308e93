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
    fs::path folder = path.parent_path();
    if (folder.filename() == "alternates") folder = folder.parent_path();
    for (Seeded& seeded : Seed(*source)) {
      all.push_back({fmt::format("{}:{}:{}", name.string(), seeded.place, seeded.op),
                     folder.filename().string(), seeded.op, std::move(seeded.text), path});
    }
  }
  return all;
}

Result<std::vector<Mutant>> ReadPatches(const fs::path& folder, const fs::path& problems) {
  std::map<std::string, fs::path> homes;  // by slug
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(problems)) {
    if (entry.path().filename() == "problem.toml")
      homes[entry.path().parent_path().filename().string()] = entry.path().parent_path();
  }
  std::vector<fs::path> patches;
  std::error_code none;  // without the folder there are no patches
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, none))
    if (entry.path().extension() == ".patch") patches.push_back(entry.path());
  std::sort(patches.begin(), patches.end());

  std::vector<Mutant> all;
  for (const fs::path& path : patches) {
    const Result<std::string> patch = Read(path);
    if (!patch) return Fail(patch.error());
    const std::string slug = path.parent_path().filename().string();
    const std::size_t head = patch->find("--- a/");
    if (head == std::string::npos || !homes.contains(slug))
      return Fail("{}: it must lie in a problem's folder and name a file of it", path.string());
    const std::size_t end = patch->find('\n', head);
    const fs::path original = homes[slug] / patch->substr(head + 6, end - head - 6);
    const Result<std::string> source = Read(original);
    if (!source) return Fail("{}: {}", path.string(), source.error().message);
    Result<std::string> text = problem::ApplyPatch(*source, patch->substr(head));
    if (!text) return Fail("{}: {}", path.string(), text.error().message);
    all.push_back(
        {path.lexically_relative(folder).string(), slug, "by_hand", std::move(*text), original});
  }
  return all;
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
