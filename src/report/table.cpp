// Tables of text, and the leaderboard made of one.
#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <utility>

#include "report/summary.h"

namespace allranks::report {
namespace {

// What a terminal obeys instead of showing it: control characters, marks that turn the direction of
// text, separators of lines. Names and notes come from files.
bool Harmless(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  if (code == 0x61c || (code >= 0x200b && code <= 0x200f)) return false;
  return !(code >= 0x2028 && code <= 0x202e) && !(code >= 0x2060 && code <= 0x206f) &&
         code != 0xfeff;
}

// The code point that begins at `at`, and its bytes; no bytes if it is not UTF-8.
std::pair<std::uint32_t, std::size_t> CodeAt(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])) : 0u;
  };
  const std::uint32_t first = byte(at);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xf0 && first < 0xf5   ? 4
                            : first >= 0xe0 && first < 0xf0 ? 3
                            : first >= 0xc2 && first < 0xe0 ? 2
                                                            : 0;
  if (bytes == 0) return {0, 0};
  std::uint32_t code = first & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return {0, 0};
    code = code << 6 | (byte(at + i) & 0x3f);
  }
  const std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  return code < least[bytes] || code > 0x10ffff ? std::pair(0u, std::size_t{0})
                                                : std::pair(code, bytes);
}

std::size_t Width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string Clean(const std::string& text) {
  std::string clean;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = CodeAt(text, at);
    if (bytes > 0 && Harmless(code)) {
      clean.append(text, at, bytes);
    } else {
      clean += '?';
    }
    at += std::max<std::size_t>(bytes, 1);
  }
  return clean;
}

std::string Shown(const std::string& text, std::size_t most) {
  std::string shown = Clean(text);
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
    word = Clean(word);
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
  const bool unsupported =
      std::any_of(summary.models.begin(), summary.models.end(),
                  [](const ModelSummary& model) { return model.unsupported > 0; });
  std::string out;
  for (std::size_t first = 0; first < summary.models.size();) {
    // Models of one profile stand together.
    const auto profile = [&](std::size_t m) {
      const campaign::Settings& run = summary.runs[summary.models[m].run_index];
      return std::pair(run.profile_hash, run.profile);
    };
    TextTable table;
    table.left = "b";
    table.rows.push_back({"group", "model", "strict pass %", "score %", "within rounds %",
                          "GM speedup", "$/problem", "problems", "left out"});
    if (unsupported) table.rows.back().emplace_back("score % if unsupported fails");
    std::size_t m = first;
    for (; m < summary.models.size() && profile(m) == profile(first); ++m) {
      const ModelSummary& model = summary.models[m];
      const Figures& all = model.all;
      const bool known = all.problems > 0;
      table.rows.push_back(
          {std::to_string(model.rank_group), Shown(model.label, kName),
           known ? percent(all.strict_pass) : "-", known ? percent(all.score) : "-",
           known ? percent(all.pass_within) : "-",
           all.gm_speedup ? fmt::format("{:.2f}", *all.gm_speedup) : "-",
           dollars(model.dollars_per_problem), std::to_string(all.problems),
           std::to_string(model.unfinished + model.unsupported + model.internal_errors)});
      if (unsupported) table.rows.back().push_back(Percent(model.score_if_unsupported_fails));
    }
    if (first > 0) out += "\n";
    if (first > 0 || m < summary.models.size())
      out += fmt::format("Profile {} ({})\n", Shown(profile(first).second, kName),
                         Clean(profile(first).first.substr(0, 12)));
    out += Render(table);
    first = m;
  }
  if (summary.models.empty()) out += "No models.\n";
  out +=
      "\n" + Wrapped(
                 "Best first, 95 % intervals by bootstrap over families. A group is 1 + the "
                 "number of models that are significantly better (paired, 95 %) by strict pass or, "
                 "where that does not decide, by score; the order within a group has no "
                 "meaning. Left out: samples that are unfinished, "
                 "unsupported or internal_error.",
                 100, "");
  for (const std::string& sentence : summary.times) out += Wrapped(sentence, 100, "");
  for (const std::string& note : summary.notes) out += Wrapped("Note: " + note, 100, "");
  return out;
}

}  // namespace allranks::report
