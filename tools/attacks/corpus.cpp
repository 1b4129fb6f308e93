#include "attacks/corpus.h"

#include <algorithm>
#include <sstream>

#include "base/files.h"

namespace allranks::attacks {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

Result<Attack> ReadAttack(const fs::path& path) {
  auto text = ReadWhole(path);
  if (!text) return Fail(text.error());
  Attack attack;
  attack.name = path.stem();
  attack.text = *text;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line) && line.starts_with("// ");) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) break;
    const std::string key = line.substr(3, colon - 3), value = line.substr(colon + 2);
    if (key == "tries") {
      attack.tries = value;
    } else if (key == "rows") {
      attack.rows = Split(value, ' ');
    } else if (key == "verdict") {
      attack.verdicts = Split(value, '|');
    } else if (key == "cases") {
      attack.all_cases = value == "all";
    } else if (key == "drained") {
      attack.drained = value;
    } else if (key == "problem") {
      attack.problem = value;
    } else if (key == "at most") {
      attack.at_most = value;
    } else if (key == "with") {
      auto first = ReadWhole(path.parent_path() / value);
      if (!first) return Fail(first.error());
      attack.text = *first + attack.text;
    } else {
      break;
    }
  }
  if (attack.tries.empty() || attack.verdicts.empty()) {
    return Fail("{}: the first lines must describe the attempt and the expected verdict",
                path.string());
  }
  return attack;
}

}  // namespace

Result<std::vector<Attack>> ReadCorpus(const fs::path& folder) {
  std::vector<Attack> all;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const fs::path extension = entry.path().extension();
    if (extension != ".cu" && extension != ".txt") continue;
    auto attack = ReadAttack(entry.path());
    if (!attack) return Fail(attack.error());
    all.push_back(std::move(*attack));
  }
  if (error) return Fail("{}: {}", folder.string(), error.message());
  std::sort(all.begin(), all.end(),
            [](const Attack& a, const Attack& b) { return a.name < b.name; });
  return all;
}

}  // namespace allranks::attacks
