#include "cli/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "base/words.h"
#include "cli/places.h"

namespace allranks::cli {
namespace {

std::vector<std::string> SplitAtCommas(const std::string& words) {
  std::vector<std::string> split;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find(',', at), words.size());
    split.push_back(words.substr(at, end - at));
    at = end + 1;
  }
  return split;
}

// Those that load, by slug; the first of two with the same slug.
Result<std::vector<problem::Problem>> AllProblems(const std::string& folder) {
  std::vector<problem::Problem> all;
  std::set<std::string> slugs;
  for (const std::string& root : ProblemFolders(folder)) {
    for (const std::filesystem::path& path : problem::Find(root)) {
      if (!slugs.insert(path.filename().string()).second) continue;
      Result<std::vector<problem::Problem>> problems = problem::LoadAll(path);
      if (!problems) return Fail(problems.error());
      std::move(problems->begin(), problems->end(), std::back_inserter(all));
    }
  }
  std::sort(all.begin(), all.end(),
            [](const problem::Problem& a, const problem::Problem& b) { return a.slug < b.slug; });
  return all;
}

}  // namespace

std::vector<std::string> SplitModels(const std::string& words) {
  std::vector<std::string> split;
  for (std::size_t at = 0; at <= words.size();) {
    std::size_t end = std::min(words.find(',', at), words.size());
    const std::string word = words.substr(at, end - at);
    const std::size_t equals = word.find('=');
    if (word.starts_with("command:") ||
        (equals != std::string::npos && word.substr(equals + 1).starts_with("command:")))
      end = words.size();
    split.push_back(words.substr(at, end - at));
    at = end + 1;
  }
  return split;
}

Result<std::vector<model::Entry>> SelectModels(const std::vector<std::string>& words,
                                               const std::string& file) {
  const Result<std::string> path = FindModelsFile(file);
  if (!path) return Fail(path.error());
  const Result<std::vector<model::Entry>> known = model::LoadModels(*path);
  if (!known) return Fail(known.error());
  std::vector<model::Entry> chosen;
  for (const std::string& group : words) {
    for (const std::string& word : SplitModels(group)) {
      if (word.empty()) return Fail("--models '{}' has an empty name: remove a comma", group);
      if (word.starts_with("="))
        return Fail("--models '{}' has no name before the =: write NAME=MODEL", word);
      Result<model::Entry> entry = model::FindModel(word, *known);
      if (!entry) return Fail(entry.error());
      const bool twice = std::any_of(chosen.begin(), chosen.end(), [&](const model::Entry& other) {
        return other.name == entry->name;
      });
      if (twice)
        return Fail("--models gives two models the same name '{}': rename one with NAME={}",
                    entry->name, word.substr(word.find('=') + 1));
      chosen.push_back(std::move(*entry));
    }
  }
  return chosen;
}

Result<std::vector<problem::Problem>> SelectProblems(const std::vector<std::string>& words,
                                                     const std::string& folder) {
  std::vector<problem::Problem> chosen;
  std::set<std::string> slugs;
  std::set<std::string> named;  // by their own names, not as part of a selection
  const auto take = [&](problem::Problem problem) {
    if (slugs.insert(problem.slug).second) chosen.push_back(std::move(problem));
  };
  for (const std::string& group : words) {
    for (const std::string& word : SplitAtCommas(group)) {
      const bool category = word.starts_with("category:"), level = word.starts_with("level:");
      if (word.empty()) return Fail("--problems '{}' has an empty name: remove a comma", group);
      const std::string selector = word.substr(0, word.find(':'));
      if (!category && !level && selector.size() < word.size())
        return Fail("'{}' is no selection: write category:C or level:L{}", word,
                    DidYouMean(selector, {"category", "level"}));
      if (!category && !level && word != "all") {
        Result<problem::Problem> problem = FindProblem(word, folder);
        if (!problem) return Fail(problem.error());
        if (!named.insert(problem->slug).second)
          return Fail("--problems names {} twice: name each problem once", problem->slug);
        take(std::move(*problem));
        continue;
      }
      Result<std::vector<problem::Problem>> all = AllProblems(folder);
      if (!all) return Fail(all.error());
      const std::string wanted = word.substr(word.find(':') + 1);
      std::set<std::string> there;
      bool any = false;
      for (problem::Problem& problem : *all) {
        const std::string& has = category ? problem.category : problem.level;
        there.insert(has);
        if ((category || level) && has != wanted) continue;
        any = true;
        take(std::move(problem));
      }
      if (any) continue;
      std::string names;
      for (const std::string& one : there) names += (names.empty() ? "" : ", ") + one;
      names += DidYouMean(wanted, {there.begin(), there.end()});
      return Fail("no problem matches '{}'; the problems are: {}", word,
                  names.empty() ? "none" : names);
    }
  }
  return chosen;
}

std::string Quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./:=,+%@").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace allranks::cli
