// Runs the experiments' programs on the virtual node, several at a time, and reads the times that
// they print. See measure.h.
#include "fidelity/measure.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace allranks::fidelity {

namespace {

Result<std::string> Run(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return Fail("cannot start `{}`", command);
  std::string output;
  char part[4096];
  while (const std::size_t got = std::fread(part, 1, sizeof part, pipe)) output.append(part, got);
  const int status = pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Fail("`{}` ended with {}", command,
                WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  return output;
}

Result<void> MeasureOne(Experiment& experiment, const Places& places, bool quick) {
  std::string command = fmt::format("ALLRANKS_PROFILES='{}' '{}' exec --profile {} -- '{}/{}' {}",
                                    places.profiles, places.allranks, experiment.profile,
                                    places.programs, experiment.program, experiment.variant);
  std::vector<Point*> wanted;
  for (Point& point : experiment.points) {
    if (quick && !point.quick) continue;
    wanted.push_back(&point);
    command += fmt::format(" {}", point.size);
  }
  if (wanted.empty()) return {};
  Result<std::string> output = Run(command);
  if (!output) return Fail("{}: {}", experiment.name, output.error().message);
  std::istringstream lines(*output);
  for (Point* point : wanted) {
    double size = 0;
    if (!(lines >> size >> point->simulated) || point->simulated <= 0)
      return Fail("{}: the program printed no time for size {}", experiment.name, point->size);
  }
  return {};
}

}  // namespace

Result<void> Measure(Points& points, const Places& places, bool quick, int jobs) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  Result<void> outcome;
  std::vector<std::thread> workers;
  for (int i = 0; i < jobs; ++i) {
    workers.emplace_back([&] {
      while (true) {
        const std::size_t mine = next++;
        if (mine >= points.experiments.size()) return;
        Result<void> result = MeasureOne(points.experiments[mine], places, quick);
        const std::lock_guard lock(mutex);
        if (!result && outcome) outcome = std::move(result);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  return outcome;
}

Result<void> Recall(Points& points, const std::string& path) {
  std::ifstream in(path);
  const nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  if (!json.is_object() || !json.contains("results")) return Fail("{} contains no results", path);
  for (Experiment& experiment : points.experiments) {
    for (const auto& entry : json["results"]) {
      if (entry.value("experiment", "") != experiment.name) continue;
      for (Point& point : experiment.points) {
        for (const auto& known : entry["points"]) {
          if (std::abs(known.value("size", 0.0) - point.size) < 1e-4 * point.size)
            point.simulated = known.value("simulated_us", 0.0);
        }
      }
    }
  }
  return {};
}

}  // namespace allranks::fidelity
