// Do remedies cure? Each source that is wrong on purpose is judged until there is a finding; the
// edits of the first one are applied to a copy of it, to the letter, and the copy is judged again.
// It is cured if nothing is found that counts and its results are right. Where something is left,
// the next remedy is applied as well: `cured_later`.
//
// Sources are protocol programs (programs.h), or with --mutants the bugs that tools/mutants sows
// into the problems' references and alternates (sown.h).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>

#include "common/run.h"
#include "common/spread.h"
#include "remedies/programs.h"
#include "remedies/sown.h"

namespace allranks::remedies {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Choice {
  std::vector<std::string> sources, only;
  std::string command = ALLRANKS_COMMAND, folder;
  int schedules = 10, jobs = 2;
  std::size_t every = 1, first = 0;
  double floor = 0;
  bool mutants = false, by_hand = false, verbose = false;
};

// One thing to be cured.
struct Item {
  std::string name, group;
  std::function<Cure(const fs::path& folder, Json* first)> run;
};

Result<std::vector<Item>> ItemsOf(const Choice& choice) {
  std::vector<Item> items;
  for (const Variant& variant : VariantsOf(choice.sources, choice.only)) {
    items.push_back(
        {variant.Name(), variant.kind, [&choice, variant](const fs::path& folder, Json* first) {
           return TryVariant(variant, choice.command, choice.schedules, folder, first);
         }});
  }
  if (choice.mutants) {
    Result<std::vector<mutants::Mutant>> sown = Sown(choice.by_hand, choice.only);
    if (!sown) return Fail(sown.error());
    for (const mutants::Mutant& mutant : *sown) {
      items.push_back(
          {mutant.id, mutant.op, [&choice, mutant](const fs::path& folder, Json* first) {
             return TrySown(mutant, choice.command, folder, first);
           }});
    }
  }
  for (const std::string& name : choice.only) {
    const std::string stem = name.substr(0, name.find(':'));
    if (std::none_of(items.begin(), items.end(),
                     [&](const Item& item) { return item.name.starts_with(stem); }))
      return Fail("no source named {}", name);
  }
  std::vector<Item> some;
  for (std::size_t i = choice.first; i < items.size(); i += choice.every)
    some.push_back(std::move(items[i]));
  return some;
}

int Main(const Choice& choice) {
  const Result<std::vector<Item>> items = ItemsOf(choice);
  if (!items) {
    std::cerr << items.error().message << "\n";
    return 1;
  }
  const tools::Scratch scratch("remedies");
  Tally tally;
  std::mutex mutex;
  tools::Spread(choice.jobs, items->size(), [&](std::size_t at) {
    const Item& item = (*items)[at];
    const fs::path folder = scratch.path() / std::to_string(at);
    fs::create_directories(folder);
    Json first;
    const Cure cure = item.run(folder, &first);
    fs::remove_all(folder);
    const std::lock_guard lock(mutex);
    if (!choice.folder.empty()) {
      std::string name = item.name + ".cu";
      std::replace(name.begin(), name.end(), '/', '.');
      fs::create_directories(choice.folder);
      std::ofstream(fs::path(choice.folder) / name, std::ios::binary) << cure.source;
    }
    if (choice.verbose && !first.is_null()) fmt::print("{} {}\n", item.name, first.dump());
    tally.Add(item.name, item.group, cure);
  });
  const double share = tally.Print();
  if (share >= choice.floor) return 0;
  fmt::print("less than {} % are fixed\n", choice.floor);
  return 1;
}

}  // namespace
}  // namespace allranks::remedies

int main(int argc, char** argv) {
  allranks::remedies::Choice choice;
  CLI::App app("Applies remedies to sources with seeded bugs.", "remedies");
  auto* sources = app.add_option("sources", choice.sources, "Programs, or folders of programs");
  auto* mutants =
      app.add_flag("--mutants", choice.mutants, "Use the bugs that tools/mutants seeds");
  sources->excludes(mutants);
  app.add_flag("--by-hand", choice.by_hand, "Include tests/mutants/blind")->needs(mutants);
  app.add_option("--command", choice.command, "The allranks command");
  app.add_option("--only", choice.only, "Only items whose names start with this, or NAME:BUG");
  app.add_option("--every", choice.every, "Only every N-th item")->check(CLI::PositiveNumber);
  app.add_option("--first", choice.first, "With --every: index of the first item, from 0");
  app.add_option("--schedules", choice.schedules, "For programs: run schedules 0 to N")
      ->check(CLI::Range(0, 10'000));
  app.add_option("--floor", choice.floor, "Fail if a smaller share is fixed, in percent")
      ->check(CLI::Range(0, 100));
  app.add_option("--keep", choice.folder, "Folder for the changed sources");
  app.add_option("-j,--jobs", choice.jobs, "Number of concurrent items")->check(CLI::Range(1, 256));
  app.add_flag("-v,--verbose", choice.verbose, "Print the findings of each item as JSON");
  CLI11_PARSE(app, argc, argv);
  if (choice.sources.empty() && !choice.mutants) {
    std::cerr << "give programs, folders of programs, or --mutants\n";
    return 1;
  }
  return allranks::remedies::Main(choice);
}
