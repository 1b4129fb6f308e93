// The command `fidelity`: runs the experiments of points.toml on the virtual node and says how far
// its times are from those published for real machines.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "fidelity/measure.h"
#include "fidelity/points.h"
#include "fidelity/report.h"
#include "fidelity/score.h"

namespace {

using namespace allranks::fidelity;

// The goals, which --check asks for.
constexpr double kMostOther = 0.20, kMostNeverFitted = 0.30, kLeastOrder = 0.95, kMostLarge = 0.10;

// A part of the points has no large messages.
bool Reached(const Score& score, bool part) {
  return score.other_sizes.count > 0 && score.other_sizes.value <= kMostOther &&
         score.never_fitted.count > 0 && score.never_fitted.value <= kMostNeverFitted &&
         !score.pairs.empty() && score.order >= kLeastOrder &&
         (part || (score.large_messages.count > 0 && score.large_messages.value <= kMostLarge));
}

int Main(int argc, char** argv) {
  const std::string source = ALLRANKS_SOURCE_DIR;
  CLI::App app{"Compare the virtual node's times with published measurements"};
  bool quick = false, json = false, write = false, check = false;
  int jobs = 2;
  std::string only, from, profiles = source + "/profiles";
  std::string table = source + "/tools/fidelity/points.toml";
  app.add_flag("--quick", quick, "Only the points marked quick");
  app.add_flag("--json", json, "Print the result as JSON");
  app.add_flag("--write", write, "Write docs/fidelity.md and docs/fidelity.svg");
  app.add_flag("--check", check, "Fail if the goals are missed");
  app.add_option("--only", only, "Only experiments whose name contains this");
  app.add_option("--from", from, "Read the times from the --json output of an earlier run");
  app.add_option("--points", table, "The table of published points");
  app.add_option("--profiles", profiles, "Folder of the profiles");
  app.add_option("--jobs", jobs, "Number of concurrent experiments")->check(CLI::Range(1, 64));
  CLI11_PARSE(app, argc, argv);

  const auto fail = [](const std::string& message) {
    std::fprintf(stderr, "fidelity: %s\n", message.c_str());
    return 1;
  };
  if (write && (quick || !only.empty()))
    return fail("--write needs all points, not a part of them");
  auto points = LoadPoints(table, profiles);
  if (!points) return fail(points.error().message);
  std::erase_if(points->experiments, [&](const Experiment& e) {
    return e.name.find(only) == std::string::npos && e.profile.find(only) == std::string::npos;
  });
  const Places places{ALLRANKS_COMMAND, ALLRANKS_FIDELITY_PROGRAMS, profiles};
  const auto measured =
      from.empty() ? Measure(*points, places, quick, jobs) : Recall(*points, from);
  if (!measured) return fail(measured.error().message);
  const Score score = ScoreOf(*points);
  std::fputs(json ? (JsonOf(*points, score) + "\n").c_str() : TableOf(*points, score).c_str(),
             stdout);
  if (write) {
    const auto written =
        WriteDocs(*points, score, source + "/tools/fidelity/notes.md", source + "/docs");
    if (!written) return fail(written.error().message);
  }
  if (check && !Reached(score, quick))
    return fail("the goals are missed, or nothing was compared: see above");
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return Main(argc, argv); }
