// points.toml → Points, and what makes the comparison a fair one: who was fitted, and on what. See
// points.h.
#include "fidelity/points.h"

#include <toml++/toml.h>

#include <optional>
#include <set>

namespace allranks::fidelity {

namespace {

// Points are written [size, microseconds], with further words "fit" and "quick".
Result<Point> ReadPoint(const toml::array* entry, const Experiment& experiment) {
  Point point;
  if (entry == nullptr || entry->size() < 2)
    return Fail("{}: a point is [size, microseconds, words...]", experiment.name);
  point.size = (*entry)[0].value<double>().value_or(0);
  point.published = (*entry)[1].value<double>().value_or(0);
  if (point.size <= 0 || point.published <= 0)
    return Fail("{}: a size or time is not a positive number", experiment.name);
  for (std::size_t i = 2; i < entry->size(); ++i) {
    const std::string word = (*entry)[i].value_or<std::string>("");
    if (word == "fit")
      point.fitted = true;
    else if (word == "quick")
      point.quick = true;
    else
      return Fail("{}: unknown word `{}` behind a point", experiment.name, word);
  }
  return point;
}

Result<Experiment> ReadExperiment(const toml::table& table) {
  Experiment experiment;
  const auto text = [&](const char* key) { return table[key].value_or<std::string>(""); };
  experiment.name = text("name");
  experiment.platform = text("platform");
  experiment.profile = text("profile");
  experiment.program = text("program");
  experiment.variant = text("variant");
  experiment.operation = text("operation");
  experiment.size_unit = text("size_unit");
  experiment.source = text("source");
  experiment.measured = text("measured");
  experiment.bytes_per_size = table["bytes_per_size"].value_or(0.0);
  experiment.fitted = table["fitted"].value_or(false);
  experiment.bandwidth = table["bandwidth"].value_or(false);
  for (const char* key :
       {"name", "platform", "profile", "program", "variant", "operation", "size_unit", "source"}) {
    if (text(key).empty()) return Fail("experiment `{}`: no {}", experiment.name, key);
  }
  const toml::array* points = table["points"].as_array();
  if (points == nullptr || points->empty()) return Fail("{}: no points", experiment.name);
  for (const toml::node& node : *points) {
    Result<Point> point = ReadPoint(node.as_array(), experiment);
    if (!point) return Fail(point.error());
    if (point->fitted && !experiment.fitted)
      return Fail("{}: a held-out experiment has a fitted size", experiment.name);
    experiment.points.push_back(*point);
  }
  return experiment;
}

Result<Parameter> ReadParameter(const toml::table& table, const std::string& profiles) {
  Parameter parameter;
  parameter.profile = table["profile"].value_or<std::string>("");
  parameter.key = table["key"].value_or<std::string>("");
  parameter.fitted_on = table["fitted_on"].value_or<std::string>("");
  try {
    // What a profile does not say itself is as in the one that it extends.
    std::optional<double> value;
    for (std::string name = parameter.profile; !value && !name.empty();) {
      const toml::table profile = toml::parse_file(profiles + "/" + name + ".toml");
      value = profile.at_path(parameter.key).value<double>();
      name = profile["extends"].value_or<std::string>("");
    }
    if (!value) return Fail("{}.toml has no number {}", parameter.profile, parameter.key);
    parameter.value = *value;
  } catch (const toml::parse_error& error) {
    return Fail("{}.toml: {}", parameter.profile, error.description());
  }
  return parameter;
}

// At most half of the experiments are fitted, and every parameter is fitted on such ones only:
// their names stand between backquotes.
Result<void> Fair(const Points& points) {
  std::set<std::string> fitted;
  for (const Experiment& experiment : points.experiments)
    if (experiment.fitted) fitted.insert(experiment.name);
  if (fitted.size() * 2 > points.experiments.size())
    return Fail("{} of {} experiments are fitted: at most half may be", fitted.size(),
                points.experiments.size());
  for (const Parameter& parameter : points.parameters) {
    const std::string& text = parameter.fitted_on;
    bool any = false;
    for (std::size_t from = text.find('`'); from != std::string::npos;) {
      const std::size_t to = text.find('`', from + 1);
      if (to == std::string::npos) break;
      const std::string name = text.substr(from + 1, to - from - 1);
      if (!fitted.contains(name))
        return Fail("{} of {} is fitted on {}, which is no fitted experiment", parameter.key,
                    parameter.profile, name);
      any = true;
      from = text.find('`', to + 1);
    }
    if (!any) return Fail("{} of {} is fitted on nothing", parameter.key, parameter.profile);
  }
  return {};
}

}  // namespace

Result<Points> LoadPoints(const std::string& path, const std::string& profiles) {
  Points points;
  toml::table table;
  try {
    table = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    return Fail("{}:{}: {}", path, error.source().begin.line, error.description());
  }
  std::set<std::string> names;
  if (const toml::array* experiments = table["experiment"].as_array()) {
    for (const toml::node& node : *experiments) {
      if (!node.is_table()) return Fail("{}: an experiment is a table", path);
      Result<Experiment> experiment = ReadExperiment(*node.as_table());
      if (!experiment) return Fail("{}: {}", path, experiment.error().message);
      if (!names.insert(experiment->name).second)
        return Fail("{}: {} is there twice", path, experiment->name);
      points.experiments.push_back(std::move(*experiment));
    }
  }
  if (const toml::array* parameters = table["parameter"].as_array()) {
    for (const toml::node& node : *parameters) {
      if (!node.is_table()) return Fail("{}: a parameter is a table", path);
      Result<Parameter> parameter = ReadParameter(*node.as_table(), profiles);
      if (!parameter) return Fail("{}: {}", path, parameter.error().message);
      points.parameters.push_back(std::move(*parameter));
    }
  }
  if (const auto fair = Fair(points); !fair) return Fail("{}: {}", path, fair.error().message);
  return points;
}

}  // namespace allranks::fidelity
