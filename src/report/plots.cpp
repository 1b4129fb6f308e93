// What is plotted of a summary and its runs. One gnuplot script draws everything as SVG and PNG; it
// stays beside the drawings (plots.gp), for who wants them in another style.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "report/charts.h"
#include "report/gnuplot.h"
#include "report/report.h"

namespace allranks::report {
namespace {

constexpr std::string_view kScriptHead =
    "# Written by `allranks report`: gnuplot -d plots.gp draws all plots again.\n";
constexpr std::string_view kSetOutput = "set output '";
constexpr std::size_t kMostRows = 14, kMostLines = 8, kMostPolygons = 5;

struct Named {
  std::string name;
  Chart chart;
};

template <class T>
std::vector<const ModelSummary*> First(const std::vector<T>& models, std::size_t most) {
  std::vector<const ModelSummary*> first;
  for (const ModelSummary& model : models)
    if (model.all.problems > 0 && first.size() < most) first.push_back(&model);
  return first;
}

std::size_t NumberOf(const Summary& summary, const ModelSummary* model) {
  return static_cast<std::size_t>(model - summary.models.data());
}

std::vector<std::string> ValuesOf(const Summary& summary, const std::string& dimension) {
  std::set<std::string> values;
  for (const ModelSummary& model : summary.models)
    if (const auto by = model.by.find(dimension); by != model.by.end())
      for (const auto& [value, figures] : by->second) values.insert(value);
  std::vector<std::string> ordered(values.begin(), values.end());
  const auto place = [](const std::string& value) {
    return value == "easy" ? 0 : value == "medium" ? 1 : value == "hard" ? 2 : 3;
  };
  std::sort(ordered.begin(), ordered.end(), [&](const std::string& a, const std::string& b) {
    return std::pair(place(a), a) < std::pair(place(b), b);
  });
  return ordered;
}

const Figures* FiguresOf(const ModelSummary& model, const std::string& dimension,
                         const std::string& value) {
  const auto by = model.by.find(dimension);
  if (by == model.by.end()) return nullptr;
  const auto found = by->second.find(value);
  return found == by->second.end() ? nullptr : &found->second;
}

void AddLevels(const Summary& summary, std::vector<Named>* charts) {
  std::vector<std::string> levels = ValuesOf(summary, "level");
  if (levels.empty() || levels.size() > 6) return;
  std::vector<GroupRow> rows;
  for (const ModelSummary* model : First(summary.models, kMostRows)) {
    GroupRow row{model->label, {}};
    for (const std::string& level : levels) {
      const Figures* figures = FiguresOf(*model, "level", level);
      row.values.push_back(figures != nullptr && figures->problems > 0
                               ? std::optional(figures->strict_pass.value)
                               : std::nullopt);
    }
    rows.push_back(std::move(row));
  }
  std::vector<const char*> colours{"#56b4e9", "#0072b2", "#e69f00",
                                   "#7f7f7f", "#cc79a7", "#009e73"};
  colours.resize(levels.size());
  if (!rows.empty())
    charts->push_back(
        {"levels", GroupedBars({"Strict pass by level", "strict pass in round 1, % of problems"},
                               rows, levels, colours)});
}

void AddClasses(const Summary& summary, std::vector<Named>* charts) {
  const std::vector<std::pair<std::string, const char*>> classes = {
      {"better", "#0072b2"},
      {"on_par", "#009e73"},
      {"degraded", "#e69f00"},
      {"severely_degraded", "#d55e00"},
      {"unresolved", "#9a9a9a"}};
  std::vector<StackRow> rows;
  bool resolved = false;
  for (const ModelSummary* model : First(summary.models, kMostRows)) {
    StackRow row{model->label, {}, ""};
    int sum = 0;
    for (const auto& [name, colour] : classes) {
      const auto found = model->classes.find(name);
      row.parts.push_back(found == model->classes.end() ? 0 : found->second);
      sum += found == model->classes.end() ? 0 : found->second;
      resolved = resolved || (name != "unresolved" && row.parts.back() > 0);
    }
    row.right = fmt::format("of {}", sum);
    if (sum > 0) rows.push_back(std::move(row));
  }
  if (!resolved) return;
  charts->push_back(
      {"classes",
       StackedBars({"Speed of what passes", "% of strict passes, against the reference"}, rows,
                   {"better", "on par", "degraded", "severely degraded", "unresolved"},
                   {classes[0].second, classes[1].second, classes[2].second, classes[3].second,
                    classes[4].second})});
}

void AddRadar(const Summary& summary, const std::string& dimension, std::vector<Named>* charts) {
  const std::vector<std::string> spokes = ValuesOf(summary, dimension);
  if (spokes.size() < 3 || spokes.size() > 12) return;  // fewer make no polygon
  std::vector<RadarSeries> series;
  for (const ModelSummary* model : First(summary.models, kMostPolygons)) {
    RadarSeries one{model->label, NumberOf(summary, model), {}};
    for (const std::string& spoke : spokes) {
      const Figures* figures = FiguresOf(*model, dimension, spoke);
      one.values.push_back(figures != nullptr ? figures->score.value : 0);
    }
    series.push_back(std::move(one));
  }
  if (!series.empty())
    charts->push_back(
        {"radar_" + dimension, Radar("Score by " + dimension + ", %", spokes, series)});
}

void AddParallelism(const Summary& summary, std::vector<Named>* charts) {
  const std::vector<std::string> values = ValuesOf(summary, "parallelism");
  if (values.size() < 2) return;
  std::vector<const ModelSummary*> models = First(summary.models, kMostPolygons);
  std::vector<GroupRow> rows;  // one per value: there are more of them than of models
  for (const std::string& value : values) {
    GroupRow row{value, {}};
    for (const ModelSummary* model : models) {
      const Figures* figures = FiguresOf(*model, "parallelism", value);
      row.values.push_back(figures != nullptr && figures->problems > 0
                               ? std::optional(figures->score.value)
                               : std::nullopt);
    }
    rows.push_back(std::move(row));
  }
  if (rows.size() > kMostRows) rows.resize(kMostRows);
  std::vector<std::string> names;
  std::vector<const char*> colours;
  for (const ModelSummary* model : models) {
    names.push_back(model->label);
    colours.push_back(Colour(NumberOf(summary, model)));
  }
  if (!models.empty())
    charts->push_back({"parallelism", GroupedBars({"Score by parallelism", "score in round 1, %"},
                                                  rows, names, colours)});
}

void AddStrictLenient(const Summary& summary, std::vector<Named>* charts) {
  std::vector<DotRow> rows;
  for (const ModelSummary* model : First(summary.models, kMostRows))
    rows.push_back({model->label, model->all.strict_pass.value, model->all.lenient_pass.value});
  if (!rows.empty())
    charts->push_back(
        {"strict_lenient", Dumbbells({"Strict against lenient pass", "round 1, % of problems"},
                                     rows, "strict pass", "lenient pass")});
}

void AddRounds(const Summary& summary, std::vector<Named>* charts) {
  std::vector<LineSeries> series;
  std::size_t most = 0;
  for (const ModelSummary* model : First(summary.models, kMostLines)) {
    LineSeries one{model->label, NumberOf(summary, model), false, {}};
    for (std::size_t i = 0; i < model->pass_within_round.size(); ++i)
      one.points.emplace_back(static_cast<double>(i + 1), 100 * model->pass_within_round[i].value);
    most = std::max(most, one.points.size());
    series.push_back(std::move(one));
  }
  if (most < 2) return;
  LineAxes axes;
  axes.title = "Gain by round";
  axes.x = "rounds at most";
  axes.y = "strict pass, % of problems";
  axes.y_range = {0, 100};
  for (std::size_t i = 1; i <= most; ++i)
    axes.x_tics.emplace_back(static_cast<double>(i), std::to_string(i));
  charts->push_back({"rounds", Lines(series, axes)});
}

std::string Bytes(double bytes) {
  const char* unit = "B";
  for (const char* larger : {"kB", "MB", "GB"}) {
    if (bytes < 999.5) break;
    bytes /= 1000;
    unit = larger;
  }
  return fmt::format("{:.{}f} {}", bytes, bytes < 10 && bytes != std::floor(bytes) ? 1 : 0, unit);
}

void AddMovers(const Summary& summary, std::vector<Named>* charts) {
  std::set<std::string> movers;
  for (const ModelSummary& model : summary.models)
    for (const auto& [mover, bytes] : model.moved)
      if (bytes > 0) movers.insert(mover);
  std::vector<StackRow> rows;
  for (const ModelSummary* model : First(summary.models, kMostRows)) {
    StackRow row{model->label, {}, ""};
    double sum = 0;
    for (const std::string& mover : movers) {
      const auto found = model->moved.find(mover);
      row.parts.push_back(found == model->moved.end() ? 0 : found->second);
      sum += row.parts.back();
    }
    row.right = Bytes(sum);
    if (sum > 0) rows.push_back(std::move(row));
  }
  if (rows.empty()) return;
  std::vector<std::string> names;
  std::vector<const char*> colours;
  for (const std::string& mover : movers) {
    names.push_back(mover);
    std::replace(names.back().begin(), names.back().end(), '_', ' ');
    colours.push_back(Colour(colours.size()));
  }
  charts->push_back(
      {"movers", StackedBars({"Bytes by mover", "% of the bytes of a burst, strict passes"}, rows,
                             names, colours)});
}

// Each model's fastest strict pass of a problem.
std::map<std::size_t, const campaign::Round*> BestRounds(const Summary& summary,
                                                         const std::vector<campaign::Run>& runs,
                                                         const std::string& slug) {
  std::map<std::size_t, const campaign::Round*> best;
  for (std::size_t m = 0; m < summary.models.size(); ++m) {
    const ModelSummary& model = summary.models[m];
    if (model.run_index >= runs.size()) continue;
    for (const campaign::Sample& sample : runs[model.run_index].samples) {
      if (sample.problem != slug || sample.model != model.facts.name) continue;
      for (const campaign::Round& round : sample.rounds) {
        const campaign::Round*& known = best[m];
        if (round.strict && (known == nullptr || round.score > known->score)) known = &round;
      }
    }
  }
  return best;
}

void AddProblem(const Summary& summary, const std::vector<campaign::Run>& runs,
                const std::string& slug, std::vector<Named>* charts) {
  LineSeries roofline{"roofline", 0, true, {}};
  std::vector<LineSeries> series;
  for (const auto& [number, round] : BestRounds(summary, runs, slug)) {
    if (round == nullptr || series.size() == kMostLines) continue;
    LineSeries one{summary.models[number].label, number, false, {}};
    std::map<double, double> bounds;
    for (const campaign::CaseFigures& figures : round->cases) {
      if (figures.kind != "timed" || !(figures.bytes > 0) || !(figures.call_ns > 0)) continue;
      one.points.emplace_back(figures.bytes, figures.call_ns / 1e3);
      if (figures.roofline_ns > 0) bounds[figures.bytes] = figures.roofline_ns / 1e3;
    }
    std::sort(one.points.begin(), one.points.end());
    if (bounds.size() > roofline.points.size()) roofline.points = {bounds.begin(), bounds.end()};
    if (!one.points.empty()) series.push_back(std::move(one));
  }
  if (series.empty() || roofline.points.size() < 2) return;  // of one size there is no line
  series.insert(series.begin(), roofline);
  LineAxes axes;
  axes.log = true;
  axes.title = "Time of a call of " + slug;
  axes.x = "payload that must reach a rank";
  const double low = roofline.points.front().first, high = roofline.points.back().first;
  for (double tic = 1; tic <= high; tic *= 10)
    if (tic >= low) axes.x_tics.emplace_back(tic, Bytes(tic));
  if (axes.x_tics.size() < 2) axes.x_tics = {{low, Bytes(low)}, {high, Bytes(high)}};
  axes.y = "time of a call, µs, modelled";
  // A slug is one level of a path, as campaign::SampleFolder makes it.
  const std::string file =
      "problems/" + campaign::SampleFolder("m", slug, 0).parent_path().filename().string();
  charts->push_back({file + "-latency", Lines(series, axes)});
  for (LineSeries& one : series)
    for (auto& [bytes, value] : one.points) value = bytes / (value * 1e3);  // GB/s
  axes.title = "Bandwidth of " + slug;
  axes.y = "bandwidth, GB/s, modelled";
  charts->push_back({file + "-bandwidth", Lines(series, axes)});
}

std::string ScriptOf(const std::vector<Named>& charts) {
  std::string script(kScriptHead);
  for (const Named& named : charts) {
    const Chart& chart = named.chart;
    for (const bool svg : {true, false}) {
      script += fmt::format("\nreset\nset encoding utf8\nset samples 2\nunset key\n{}",
                            svg ? fmt::format("set terminal svg size {},{} dynamic noenhanced font "
                                              "'DejaVu Sans,12.5'\n",
                                              chart.width, chart.height)
                                : fmt::format("set terminal pngcairo size {},{} noenhanced font "
                                              "'DejaVu Sans,9.4' fontscale 2 linewidth 2 "
                                              "pointscale 2 background '#ffffff'\n",
                                              2 * chart.width, 2 * chart.height));
      script +=
          fmt::format("{}{}.{}'\n{}", kSetOutput, named.name, svg ? "svg" : "png", chart.commands);
    }
  }
  return script + "\nunset output\n";
}

// Ink takes the colour of the text around it: right on light and on dark ground. Alone in a browser
// the drawing follows what the system prefers.
std::string Adapted(std::string svg) {
  const auto replace = [&](std::string_view from, std::string_view to) {
    for (std::size_t at = svg.find(from); at != std::string::npos;
         at = svg.find(from, at + to.size()))
      svg.replace(at, from.size(), to);
  };
  replace("\"black\"", "\"currentColor\"");
  replace("'black'", "'currentColor'");
  replace("rgb(  0,   0,   0)", "currentColor");
  replace("<title>Gnuplot</title>",
          "<style>@media (prefers-color-scheme: dark) { svg { color: #e7ebf0 } }</style>");
  return svg;
}

}  // namespace

void RemovePlots(const std::filesystem::path& out) {
  const std::filesystem::path folder = out / "plots";
  const Result<std::string> script = ReadWhole(folder / "plots.gp");
  if (!script || !script->starts_with(kScriptHead)) return;
  std::error_code ignored;
  for (std::size_t at = script->find(kSetOutput); at != std::string::npos;
       at = script->find(kSetOutput, at + 1)) {
    const std::size_t begin = at + kSetOutput.size(), end = script->find('\'', begin);
    if (end == std::string::npos) break;
    // Only what ScriptOf() writes: NAME.svg, problems/NAME.png.
    std::string_view name = std::string_view(*script).substr(begin, end - begin);
    const std::filesystem::path file = folder / name;
    if (name.starts_with("problems/")) name.remove_prefix(9);
    if (name.find('/') == std::string_view::npos && name.size() > 4 &&
        (file.extension() == ".svg" || file.extension() == ".png"))
      std::filesystem::remove(file, ignored);
  }
  std::filesystem::remove(folder / "plots.gp", ignored);
  std::filesystem::remove(folder / "problems", ignored);  // where they are empty
  std::filesystem::remove(folder, ignored);
}

Result<std::vector<std::string>> WritePlots(const Summary& summary,
                                            const std::vector<campaign::Run>& runs,
                                            const std::filesystem::path& out) {
  std::vector<Named> charts;
  AddLevels(summary, &charts);
  AddClasses(summary, &charts);
  AddRadar(summary, "category", &charts);
  AddRadar(summary, "library", &charts);
  AddParallelism(summary, &charts);
  AddStrictLenient(summary, &charts);
  AddRounds(summary, &charts);
  AddMovers(summary, &charts);
  for (const ProblemSummary& problem : summary.problems)
    AddProblem(summary, runs, problem.facts.slug, &charts);

  const std::filesystem::path folder = out / "plots";
  std::error_code error;
  std::filesystem::create_directories(folder / "problems", error);
  if (error) return Fail("{}: {}", folder.string(), error.message());
  if (Status status = WriteWhole(folder / "plots.gp", ScriptOf(charts)); !status)
    return Fail(status.error());
  // A drawing takes some 50 ms; a busy machine gets a hundred times that.
  const int seconds = 60 + 5 * static_cast<int>(charts.size());
  if (Status status = RunGnuplot(folder, "plots.gp", seconds); !status) return Fail(status.error());

  std::vector<std::string> names;
  for (const Named& named : charts) {
    const std::filesystem::path file = folder / (named.name + ".svg");
    Result<std::string> svg = ReadWhole(file);
    if (!svg) return Fail("gnuplot wrote no {}", file.string());
    // Not WriteWhole: hundreds of drawings need not each wait for the disk.
    std::ofstream stream(file, std::ios::binary | std::ios::trunc);
    stream << Adapted(std::move(*svg));
    if (!stream.flush()) return Fail("{} cannot be written", file.string());
    names.push_back(named.name);
  }
  return names;
}

}  // namespace allranks::report
