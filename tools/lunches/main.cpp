// The command `lunches`: what costs nothing, or too little, in the node's time model. Runs a pair
// of kernels per effect (programs/lunches.cu) on the virtual node and puts the ratio of their times
// beside what hardware shows and what a candidate can gain (effects.toml). --write and --check are
// for the table of docs/trust.md; times are virtual, so the table is the same on every machine.
#include <fmt/format.h>

#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/result.h"
#include "common/document.h"
#include "common/run.h"

namespace allranks::lunches {
namespace {

namespace fs = std::filesystem;

constexpr int kSeconds = 300;
constexpr const char* kBegin = "<!-- lunches: written by `lunches --write` -->\n";
constexpr const char* kEnd = "<!-- lunches: end -->";

struct Effect {
  std::string name, bad, hardware, gain, verdict;
  double ratio = 0;  // of the model: bad to good
};

Result<std::vector<Effect>> LoadEffects(const fs::path& path) {
  toml::table file;
  try {
    file = toml::parse_file(path.string());
  } catch (const toml::parse_error& error) {
    return Fail("{}:{}: {}", path.string(), error.source().begin.line, error.description());
  }
  std::vector<Effect> effects;
  const toml::array* entries = file["effect"].as_array();
  if (entries == nullptr) return Fail("{} has no [[effect]]", path.string());
  for (const toml::node& node : *entries) {
    const toml::table& entry = *node.as_table();
    const auto text = [&](const char* key) { return entry[key].value_or(std::string()); };
    Effect effect{text("name"), text("bad"), text("hardware"), text("gain"), text("verdict"), 0};
    for (const std::string* field :
         {&effect.name, &effect.bad, &effect.hardware, &effect.gain, &effect.verdict}) {
      if (field->empty()) return Fail("{}: {}: a field is missing", path.string(), effect.name);
    }
    effects.push_back(std::move(effect));
  }
  return effects;
}

// Every effect must be measured, and everything measured must be an effect.
Result<void> Measure(std::vector<Effect>& effects) {
  const tools::Scratch scratch("lunches");
  const tools::Outcome outcome =
      tools::Run({ALLRANKS_COMMAND, "exec", "--profile", "h100x8", "--", ALLRANKS_LUNCHES_PROGRAM},
                 scratch.path(), kSeconds);
  if (outcome.code != 0)
    return Fail("the program exited with code {}: {}", outcome.code, outcome.err);
  std::map<std::string, double> ratios;
  std::istringstream lines(outcome.out);
  std::string name;
  double bad = 0, good = 0;
  while (lines >> name >> bad >> good) {
    if (good <= 0) return Fail("{}: no time was measured", name);
    ratios[name] = bad / good;
  }
  for (Effect& effect : effects) {
    const auto found = ratios.find(effect.name);
    if (found == ratios.end()) return Fail("{} was not measured", effect.name);
    effect.ratio = found->second;
    ratios.erase(found);
  }
  if (!ratios.empty()) return Fail("{} is not in effects.toml", ratios.begin()->first);
  return {};
}

std::string Ratio(double ratio) {
  return ratio < 10 ? fmt::format("{:.1f}", ratio) : fmt::format("{:.0f}", ratio);
}

std::string Table(const std::vector<Effect>& effects) {
  std::string table =
      "| effect | modelled | hardware | gain for a candidate | verdict |\n|---|---|---|---|---|\n";
  for (const Effect& effect : effects) {
    table += fmt::format("| `{}`: {} | {} | {} | {} | {} |\n", effect.name, effect.bad,
                         Ratio(effect.ratio), effect.hardware, effect.gain, effect.verdict);
  }
  return table;
}

int Main(int argc, char** argv) {
  CLI::App app{"Measures what the node's time model does not charge"};
  bool write = false, check = false;
  app.add_flag("--write", write, "Write the table of docs/trust.md");
  app.add_flag("--check", check, "Fail if the table is out of date");
  CLI11_PARSE(app, argc, argv);
  const auto fail = [](const std::string& message) {
    std::cerr << "lunches: " << message << "\n";
    return 1;
  };
  const fs::path source = ALLRANKS_SOURCE_DIR;
  auto effects = LoadEffects(source / "tools/lunches/effects.toml");
  if (!effects) return fail(effects.error().message);
  if (const auto measured = Measure(*effects); !measured) return fail(measured.error().message);
  const std::string table = Table(*effects);
  std::cout << table;
  if (!write && !check) return 0;
  const Result<bool> same = tools::PutBetween(kBegin, kEnd, table, source / "docs/trust.md", write);
  if (!same) return fail(same.error().message);
  if (check && !*same) return fail("docs/trust.md is old: run `lunches --write`");
  return 0;
}

}  // namespace
}  // namespace allranks::lunches

int main(int argc, char** argv) { return allranks::lunches::Main(argc, argv); }
