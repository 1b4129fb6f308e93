// The result as a table, as JSON and as docs/fidelity.md with its figure (gnuplot draws it). See
// report.h.
#include "fidelity/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace allranks::fidelity {

namespace {

using Json = nlohmann::ordered_json;

std::string Percent(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string Signed(double share) { return fmt::format("{:+.0f} %", share * 100); }

// The figures of the goals, one line each: what, reached, goal.
std::vector<std::array<std::string, 3>> Goals(const Score& score) {
  return {
      {"mean absolute error, other sizes of fitted experiments", Percent(score.other_sizes.value),
       "≤ 20 %"},
      {"mean absolute error, experiments never fitted", Percent(score.never_fitted.value),
       "≤ 30 %"},
      {fmt::format("right order of {} pairs of schemes that differ by > 20 %", score.pairs.size()),
       Percent(score.order), "≥ 95 %"},
      {"bandwidth of the largest messages on 8 devices, mean error",
       fmt::format("{}, worst {}", Percent(score.large_messages.value), Percent(score.worst_large)),
       "≤ 10 %"},
  };
}

// One block per platform and kind of point, in this order; gnuplot picks them by index. More kinds
// than these nobody can tell apart in a figure: the table has every point by name.
struct Block {
  std::string platform;
  bool fitted = false;
};

std::vector<Block> BlocksOf(const Points& points) {
  std::vector<Block> blocks;
  for (const Experiment& experiment : points.experiments) {
    const bool known = std::any_of(blocks.begin(), blocks.end(), [&](const Block& block) {
      return block.platform == experiment.platform;
    });
    if (!known) {
      blocks.push_back({experiment.platform, true});
      blocks.push_back({experiment.platform, false});
    }
  }
  return blocks;
}

void WriteData(const Points& points, const std::vector<Block>& blocks, std::ostream& out) {
  for (const Block& block : blocks) {
    bool any = false;
    for (const Experiment& experiment : points.experiments) {
      if (experiment.platform != block.platform || experiment.fitted != block.fitted) continue;
      for (const Point& point : experiment.points) {
        if (point.simulated <= 0) continue;
        out << point.published << ' ' << point.simulated << '\n';
        any = true;
      }
    }
    out << (any ? "\n\n" : "nan nan\n\n\n");  // an empty block would shift the others
  }
}

Result<void> Plot(const Points& points, const std::string& figure) {
  const std::string data = figure + ".data", script = figure + ".plot";
  {
    const std::vector<Block> blocks = BlocksOf(points);
    std::ofstream out(data);
    WriteData(points, blocks, out);
    std::ofstream commands(script);
    commands << "set terminal svg size 620,620 font 'sans,12' background rgb 'white'\n"
             << "set output '" << figure << "'\n"
             << "set logscale xy\nset grid\nset key top left\nset size square\n"
             << "set xlabel 'published, microseconds'\nset ylabel 'simulated, microseconds'\n"
             << "set xrange [0.4:5000]\nset yrange [0.4:5000]\n"
             << "plot x with lines lc rgb 'black' title 'equal', "
             << "x*1.2 with lines dt 2 lc rgb 'gray' title '± 20 %', "
             << "x/1.2 with lines dt 2 lc rgb 'gray' notitle";
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      commands << ", '" << data << "' index " << b << " using 1:2 with points lt " << b / 2 + 1
               << " pt " << (blocks[b].fitted ? 7 : 6) << " ps 0.7 title '" << blocks[b].platform
               << (blocks[b].fitted ? ", fitted" : ", held out") << "' noenhanced";
    }
    commands << '\n';
  }
  const int status = std::system(("gnuplot '" + script + "'").c_str());
  std::remove(data.c_str());
  std::remove(script.c_str());
  if (status != 0) return Fail("gnuplot failed; it is in Debian's package gnuplot-nox");
  return {};
}

void WriteTables(const Points& points, const Score& score, std::ostream& out) {
  out << "## Where it stands\n\n| | reached | goal |\n|---|---|---|\n";
  for (const auto& [what, reached, goal] : Goals(score))
    out << fmt::format("| {} | {} | {} |\n", what, reached, goal);
  out << fmt::format(
      "\n{} points of {} experiments on {} platforms; {} experiments took part in the fit, {} did "
      "not.\n\n![published and simulated times](fidelity.svg)\n\n",
      score.points, score.experiments, score.platforms, score.fitted, score.held_out);
  out << "## Experiments\n\n| experiment | platform, profile | source | how measured | fit | mean "
         "error |\n|---|---|---|---|---|---|\n";
  for (const Experiment& e : points.experiments)
    out << fmt::format("| `{}` | {}, `{}` | {} | {} | {} | {} |\n", e.name, e.platform, e.profile,
                       e.source, e.measured, e.fitted ? "fitted" : "held out",
                       Percent(MeanError(e, false).value));
  out << "\n## Points\n\nMicroseconds. A bold size took part in the fit.\n\n| experiment | size | "
         "published | simulated | error |\n|---|---|---|---|---|\n";
  for (const Experiment& e : points.experiments) {
    for (const Point& p : e.points) {
      const std::string size = fmt::format("{:g} {}", p.size, e.size_unit);
      out << fmt::format("| `{}` | {} | {:g} | {:.4g} | {} |\n", e.name,
                         p.fitted ? "**" + size + "**" : size, p.published, p.simulated,
                         Signed(ErrorOf(p)));
    }
  }
  out << "\n## Pairs in the wrong order\n\n";
  bool none = true;
  for (const Pair& pair : score.pairs) {
    if (pair.right()) continue;
    none = false;
    out << fmt::format("- {} against {}: published {:.2f} times as fast, simulated {:.2f}\n",
                       pair.faster, pair.slower, pair.published_ratio, pair.simulated_ratio);
  }
  if (none) out << "None.\n";
  out << "\n## Fitted constants\n\n| profile | constant | value | fitted on |\n|---|---|---|---|\n";
  for (const Parameter& p : points.parameters)
    out << fmt::format("| `{}` | `{}` | {:g} | {} |\n", p.profile, p.key, p.value, p.fitted_on);
}

}  // namespace

std::string JsonOf(const Points& points, const Score& score) {
  Json json;
  json["points"] = score.points;
  json["experiments"] = score.experiments;
  json["platforms"] = score.platforms;
  json["fitted"] = score.fitted;
  json["held_out"] = score.held_out;
  json["parameters"] = Json::object();
  for (const Parameter& p : points.parameters)
    json["parameters"][p.profile + "." + p.key] = p.value;
  json["fitted_mean_abs_error"] = score.fitted_sizes.value;
  json["held_out_mean_abs_error"] = score.other_sizes.value;
  json["held_out_experiment_error"] = score.never_fitted.value;
  json["held_out_experiment_point_error"] = score.never_fitted_points.value;
  json["pairwise_order"] = score.order;
  json["pairs"] = score.pairs.size();
  json["large_message_bandwidth_error"] = score.large_messages.value;
  json["large_message_bandwidth_worst"] = score.worst_large;
  json["results"] = Json::array();
  for (const Experiment& e : points.experiments) {
    Json entry;
    entry["experiment"] = e.name;
    entry["platform"] = e.platform;
    entry["profile"] = e.profile;
    entry["source"] = e.source;
    entry["fitted"] = e.fitted;
    entry["size_unit"] = e.size_unit;
    entry["mean_abs_error"] = MeanError(e, false).value;
    entry["points"] = Json::array();
    for (const Point& p : e.points) {
      if (p.simulated <= 0) continue;
      entry["points"].push_back({{"size", p.size},
                                 {"published_us", p.published},
                                 {"simulated_us", p.simulated},
                                 {"fitted", p.fitted}});
    }
    json["results"].push_back(std::move(entry));
  }
  return json.dump(2);
}

std::string TableOf(const Points& points, const Score& score) {
  std::string text;
  for (const Experiment& e : points.experiments) {
    for (const Point& p : e.points) {
      if (p.simulated <= 0) continue;
      text += fmt::format("{:<18} {:>5} {:<8} {:>9g} {:<14} {:>10.2f} {:>10.2f} {:>7}\n", e.name,
                          e.platform,
                          p.fitted   ? "fit"
                          : e.fitted ? "other"
                                     : "held out",
                          p.size, e.size_unit, p.published, p.simulated, Signed(ErrorOf(p)));
    }
  }
  for (const Pair& pair : score.pairs) {
    if (pair.right()) continue;
    text += fmt::format("wrong order: {} against {}: {:.2f}, simulated {:.2f}\n", pair.faster,
                        pair.slower, pair.published_ratio, pair.simulated_ratio);
  }
  text += fmt::format("{} points, {} experiments ({} fitted, {} held out)\n", score.points,
                      score.experiments, score.fitted, score.held_out);
  for (const auto& [what, reached, goal] : Goals(score))
    text += fmt::format("{}: {} (goal {})\n", what, reached, goal);
  return text;
}

Result<void> WriteDocs(const Points& points, const Score& score, const std::string& notes,
                       const std::string& folder) {
  std::ifstream in(notes);
  if (!in) return Fail("cannot read {}", notes);
  std::ofstream out(folder + "/fidelity.md");
  out << std::string(std::istreambuf_iterator<char>(in), {}) << '\n';
  WriteTables(points, score, out);
  out.close();
  if (!out) return Fail("cannot write {}/fidelity.md", folder);
  return Plot(points, folder + "/fidelity.svg");
}

}  // namespace allranks::fidelity
