// A run as it lies on the disk, finished or not.
#include <fmt/format.h>

#include <system_error>

#include "base/files.h"
#include "campaign/record.h"
#include "campaign/reply.h"

namespace allranks::campaign {
namespace {

// Why there is no sample.json, from what else there is.
std::string WhyUnfinished(const std::filesystem::path& folder) {
  if (const Result<std::string> why = ReadWhole(folder / "unfinished.txt", 1 << 16))
    return why->substr(0, why->find_last_not_of('\n') + 1);
  std::error_code error;
  for (int round = 1;; ++round) {
    const std::filesystem::path inside = folder / fmt::format("round-{}", round);
    if (!std::filesystem::exists(inside, error))
      return round == 1 ? "not started" : fmt::format("ended after round {}", round - 1);
    if (!std::filesystem::exists(inside / "round.json", error))
      return fmt::format("ended in round {}", round);
  }
}

}  // namespace

Result<Run> LoadRun(const std::filesystem::path& folder) {
  const Result<std::string> text = ReadWhole(folder / "run.json");
  if (!text)
    return Fail("{} is not a run folder: {}; `allranks run --out {}` creates one", folder.string(),
                text.error().message, folder.string());
  Result<Settings> settings = SettingsFrom(*text);
  if (!settings) return Fail("{}/{}", folder.string(), settings.error().message);
  Run run;
  run.folder = folder;
  run.settings = std::move(*settings);
  for (const ModelFacts& model : run.settings.models) {
    for (const ProblemFacts& problem : run.settings.problems) {
      for (int number = 0; number < run.settings.samples; ++number) {
        const std::filesystem::path inside =
            folder / SampleFolder(model.name, problem.slug, number);
        const auto unfinished = [&](std::string why) {
          run.unfinished.push_back({model.name, problem.slug, number, std::move(why)});
        };
        std::error_code error;
        if (!std::filesystem::exists(inside / "sample.json", error)) {
          unfinished(WhyUnfinished(inside));
          continue;
        }
        const Result<std::string> json = ReadWhole(inside / "sample.json");
        Result<Sample> sample = json ? SampleFrom(*json) : Result<Sample>(Fail(json.error()));
        if (!sample) {
          unfinished(fmt::format("{}: {}", inside.string(), sample.error().message));
        } else if (sample->model != model.name || sample->problem != problem.slug ||
                   sample->sample != number || sample->rounds.empty()) {
          unfinished(fmt::format("{}: sample.json belongs to another sample", inside.string()));
        } else if (sample->stopped == "rounds" &&
                   sample->rounds.size() < static_cast<std::size_t>(run.settings.rounds)) {
          unfinished(
              fmt::format("has {} of {} rounds", sample->rounds.size(), run.settings.rounds));
        } else {
          run.samples.push_back(std::move(*sample));
        }
      }
    }
  }
  run.dollars = SpentInRun(folder).known;
  return run;
}

}  // namespace allranks::campaign
