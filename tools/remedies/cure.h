// Applies a finding's first remedy and judges again. What a source is and who judges it is the
// caller's: protocol programs (programs.h) or seeded bugs (sown.h).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace allranks::remedies {

// What became of one version of a source.
struct Trial {
  std::string error;                                  // it does not build
  nlohmann::json findings = nlohmann::json::array();  // that count
  std::string trouble;                                // what else is wrong
  bool Right() const { return error.empty() && findings.empty() && trouble.empty(); }
};
// `first`: the broken source, which is judged until something is found; else a changed one.
using Judge = std::function<Trial(const std::string& text, bool first)>;

struct Cure {
  // cured: by the first remedy. cured_later: by several, one after the other. no_edit: the finding
  // has no edits. not_applied: they fit no place, or what they make does not compile. not_found:
  // there is no finding that counts. not_built: the broken source does not compile.
  std::string word;
  std::string text;
  std::size_t findings = 0;
  std::string source;  // as the last edits have left it
};

Cure TryCure(const std::string& file, const std::string& text, const Judge& judge);

// The findings of the JSON of `exec --findings` or `judge --json` that count.
nlohmann::json Counted(const nlohmann::json& report);

// Counts words, prints them, and shares of those with a finding. The result: the share that the
// first remedy cures, in percent.
class Tally {
 public:
  void Add(const std::string& name, const std::string& group, const Cure& cure);
  double Print() const;

 private:
  std::map<std::string, std::size_t> words_;
  std::map<std::string, std::map<std::string, std::size_t>> groups_;
  std::vector<std::size_t> counts_;
};

}  // namespace allranks::remedies
