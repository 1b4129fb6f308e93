// Tables of text, and the leaderboard made of one.
#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "report/summary.h"

namespace allranks::report {
namespace {

std::size_t Width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string Shown(const std::string& text, std::size_t most) {
  std::string shown;
  for (const char c : text) shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  if (Width(shown) <= most) return shown;
  std::size_t end = 0;
  for (std::size_t width = 0; end < shown.size(); ++end)
    if ((shown[end] & 0xc0) != 0x80 && ++width == most) break;
  return shown.substr(0, end) + "~";
}

std::string Render(const TextTable& table) {
  std::vector<std::size_t> widths;
  for (const auto& row : table.rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], Width(row[c]));
  }
  std::string out;
  for (const auto& row : table.rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string pad(widths[c] - Width(row[c]), ' ');
      const bool left = table.left.find(static_cast<char>('a' + c)) != std::string::npos;
      line += (c == 0 ? "" : "  ") + (left ? row[c] + pad : pad + row[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string Wrapped(const std::string& text, std::size_t width, const std::string& indent) {
  std::string out, line = indent, word;
  std::istringstream words(text);
  while (words >> word) {
    if (line.size() > indent.size() && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + word;
  }
  return out + line + "\n";
}

std::string Percent(double rate) { return fmt::format("{:.1f}", rate * 100); }

std::string Counted(int count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string ToTable(const Summary& summary) {
  constexpr std::size_t kName = 36;
  // Whole percents for the bounds: a line should fit a terminal.
  const auto percent = [](const Interval& interval) {
    return fmt::format("{} [{:.0f}, {:.0f}]", Percent(interval.value), interval.low * 100,
                       interval.high * 100);
  };
  const auto dollars = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.4f}", *value) : std::string("-");
  };
  std::string out;
  for (std::size_t first = 0; first < summary.models.size();) {
    // Models of one profile stand together.
    const auto profile = [&](std::size_t m) {
      const campaign::Settings& run = summary.runs[summary.models[m].run_index];
      return std::pair(run.profile_hash, run.profile);
    };
    TextTable table;
    table.left = "b";
    table.rows.push_back({"group", "model", "score %", "strict pass %", "within rounds %",
                          "GM speedup", "$/problem", "problems", "left out"});
    std::size_t m = first;
    for (; m < summary.models.size() && profile(m) == profile(first); ++m) {
      const ModelSummary& model = summary.models[m];
      const Figures& all = model.all;
      const bool known = all.problems > 0;
      table.rows.push_back(
          {std::to_string(model.rank_group), Shown(model.label, kName),
           known ? percent(all.score) : "-", known ? percent(all.strict_pass) : "-",
           known ? percent(all.pass_within) : "-",
           all.gm_speedup ? fmt::format("{:.2f}", *all.gm_speedup) : "-",
           dollars(model.dollars_per_problem), std::to_string(all.problems),
           std::to_string(model.unfinished + model.unsupported + model.internal_errors)});
    }
    if (first > 0) out += "\n";
    if (first > 0 || m < summary.models.size())
      out += fmt::format("Profile {} ({})\n", Shown(profile(first).second, kName),
                         profile(first).first.substr(0, 12));
    out += Render(table);
    first = m;
  }
  if (summary.models.empty()) out += "No models.\n";
  out += "\n" + Wrapped(
                    "Best first, 95 % intervals by bootstrap over families. A group is 1 + the "
                    "number of models "
                    "whose score is better beyond doubt (paired, 95 %); within a group the order "
                    "means nothing. "
                    "Left out: samples that are unfinished, unsupported or internal_error.",
                    100, "");
  for (const std::string& sentence : summary.times) out += Wrapped(sentence, 100, "");
  for (const std::string& note : summary.notes) out += Wrapped("Note: " + note, 100, "");
  return out;
}

}  // namespace allranks::report
