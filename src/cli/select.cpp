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

std::vector<std::string> SplitAt(const std::string& words, char separator) {
  std::vector<std::string> split;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find(separator, at), words.size());
    split.push_back(words.substr(at, end - at));
    at = end + 1;
  }
  return split;
}

// `kind:value`; `all` has no kind and fits every problem.
struct Selector {
  std::string kind, value;
};

const std::vector<std::string>& Kinds() {
  static const std::vector<std::string> kKinds = {"category", "level", "library", "family",
                                                  "parallelism"};
  return kKinds;
}

// What a selector of this kind is compared with.
std::vector<std::string> ValuesOf(const problem::Problem& problem, const std::string& kind) {
  if (kind == "category") return {problem.category};
  if (kind == "level") return {problem.level};
  if (kind == "library") return {problem.library};
  if (kind == "family") return {problem.family};
  return problem.parallelism;
}

// The parts of "parallelism:tp+level:hard".
Result<std::vector<Selector>> SelectorsOf(const std::string& word) {
  std::vector<Selector> selectors;
  for (const std::string& part : SplitAt(word, '+')) {
    if (part == "all") continue;
    const std::size_t colon = part.find(':');
    const std::string kind = part.substr(0, colon);
    if (colon == std::string::npos ||
        std::find(Kinds().begin(), Kinds().end(), kind) == Kinds().end())
      return Fail("'{}' is no selector: write KIND:VALUE, where KIND is one of {}{}", part,
                  Join(Kinds()), DidYouMean(kind, Kinds()));
    selectors.push_back({kind, part.substr(colon + 1)});
  }
  return selectors;
}

// Those that fit every selector.
Result<std::vector<problem::Problem>> Matching(std::vector<problem::Problem> all,
                                               const std::vector<Selector>& selectors,
                                               const std::string& word) {
  for (const Selector& selector : selectors) {
    std::set<std::string> there;
    for (const problem::Problem& problem : all)
      there.merge([&] {
        const std::vector<std::string> values = ValuesOf(problem, selector.kind);
        return std::set<std::string>(values.begin(), values.end());
      }());
    if (there.contains(selector.value)) continue;
    const std::vector<std::string> known(there.begin(), there.end());
    return Fail("no problem has {}:{}; the values of {} are {}{}", selector.kind, selector.value,
                selector.kind, known.empty() ? "none" : Join(known),
                DidYouMean(selector.value, known));
  }
  std::erase_if(all, [&](const problem::Problem& problem) {
    return std::any_of(selectors.begin(), selectors.end(), [&](const Selector& selector) {
      const std::vector<std::string> values = ValuesOf(problem, selector.kind);
      return std::find(values.begin(), values.end(), selector.value) == values.end();
    });
  });
  if (all.empty())
    return Fail("no problem matches '{}': `allranks problems list` shows what each problem has",
                word);
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
  const Result<std::vector<std::filesystem::path>> files = FindModelsFiles(file);
  if (!files) return Fail(files.error());
  const Result<std::vector<model::Entry>> known = model::LoadModels(*files);
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

Result<std::vector<problem::Problem>> SelectProblems(const std::vector<std::string>& words,
                                                     const std::string& folder) {
  std::vector<problem::Problem> chosen;
  std::set<std::string> slugs;
  std::set<std::string> named;  // by their own names, not as part of a selection
  const auto take = [&](problem::Problem problem) {
    if (slugs.insert(problem.slug).second) chosen.push_back(std::move(problem));
  };
  for (const std::string& group : words) {
    for (const std::string& word : SplitAt(group, ',')) {
      if (word.empty()) return Fail("--problems '{}' has an empty name: remove a comma", group);
      bool selection = word == "all" || word.find(':') != std::string::npos;
      if (!selection) {
        Result<problem::Problem> problem = FindProblem(word, folder);
        // No slug has a +, but a path may. `all+SLUG` is a selection whose second part is wrong.
        selection =
            !problem && word.find('+') != std::string::npos && word.find('/') == std::string::npos;
        if (!selection) {
          if (!problem) return Fail(problem.error());
          if (!named.insert(problem->slug).second)
            return Fail("--problems names {} twice: name each problem once", problem->slug);
          take(std::move(*problem));
          continue;
        }
      }
      const Result<std::vector<Selector>> selectors = SelectorsOf(word);
      if (!selectors) return Fail(selectors.error());
      Result<std::vector<problem::Problem>> all = AllProblems(folder);
      if (!all) return Fail(all.error());
      Result<std::vector<problem::Problem>> matching = Matching(std::move(*all), *selectors, word);
      if (!matching) return Fail(matching.error());
      for (problem::Problem& problem : *matching) take(std::move(problem));
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
