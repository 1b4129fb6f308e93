#include "report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <tuple>

#include "base/check.h"
#include "report/gnuplot.h"

namespace allranks::report {
namespace {

constexpr std::size_t kLongestName = 20;
constexpr double kCharacter = 7.6;  // pixels, of the font below at its size
constexpr int kTop = 34, kRow = 26, kBottom = 56, kRight = 62, kLegendRow = 20;
constexpr char kPale[] = "#8a8a94a0";  // grid and links: half transparent, so pale on any ground

// The plot's place on the canvas, in pixels from the left and from the top.
std::string Place(const Chart& chart, double left, double right, double top, double bottom) {
  return fmt::format(
      "set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\nset tmargin at screen {:.4f}\n"
      "set bmargin at screen {:.4f}\n",
      left / chart.width, 1 - right / chart.width, 1 - top / chart.height, bottom / chart.height);
}

std::string Text(const std::string& quoted, const std::string& at, const char* more) {
  return fmt::format("set label {} at {} {}\n", quoted, at, more);
}

std::string Heading(const std::string& title, const Chart& chart) {
  return Text(Quoted(title), fmt::format("screen 0.5,{:.4f}", 1 - 13.0 / chart.height),
              "center font ',13.5'");
}

double NamesWidth(const std::vector<std::string>& names) {
  std::size_t longest = 4;
  for (const std::string& name : names) longest = std::max(longest, LengthOf(name, kLongestName));
  return static_cast<double>(longest) * kCharacter + 18;
}

// Squares and names below the plot, as many in a line as fit. `height` grows by what they take.
std::string Legend(const std::vector<std::pair<std::string, std::string>>& entries, Chart* chart) {
  std::vector<std::pair<double, int>> places;
  double x = 14;
  int line = 0;
  for (const auto& [name, colour] : entries) {
    const double width = static_cast<double>(LengthOf(name, kLongestName)) * kCharacter + 32;
    if (x + width > chart->width && x > 14) {
      x = 14;
      ++line;
    }
    places.emplace_back(x, line);
    x += width;
  }
  chart->height += (line + 1) * kLegendRow + 4;
  std::string out;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const double y = 12 + (line - places[i].second) * kLegendRow;
    const auto at = [&](double dx, double dy) {
      return fmt::format("screen {:.4f},{:.4f}", (places[i].first + dx) / chart->width,
                         (y + dy) / chart->height);
    };
    out += fmt::format("set object rect from {} to {} fs solid noborder fc rgb '{}'\n", at(0, -5),
                       at(10, 5), entries[i].second);
    out += Text(Quoted(entries[i].first, kLongestName), at(16, 0), "left");
  }
  return out;
}

std::string Percents(const Titles& titles, const Chart& chart) {
  return Heading(titles.title, chart) +
         fmt::format(
             "set xrange [0:100]\nset xtics 0,25,100 nomirror scale 0.5 out\nset grid xtics lt 1 "
             "lw "
             "0.6 lc rgb '{}'\nunset ytics\nset border 1\nset xlabel {} offset 0,0.3\n",
             kPale, Quoted(titles.x));
}

// Rows of names from the top, one unit of y each.
std::string RowNames(const std::vector<std::string>& names) {
  std::string out = fmt::format("set yrange [{}:0]\n", names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    out += Text(Quoted(names[i], kLongestName),
                fmt::format("graph 0,first {:.2f}", static_cast<double>(i) + 0.5),
                "right offset character -1.1,0");
  return out;
}

template <class Row>
std::vector<std::string> NamesOf(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

std::vector<std::pair<std::string, std::string>> Entries(const std::vector<std::string>& names,
                                                         const std::vector<const char*>& colours) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t i = 0; i < names.size(); ++i) entries.emplace_back(names[i], colours[i]);
  return entries;
}

struct Bar {
  double from, to, top, bottom;
};

// All bars of one colour as a data block and how to draw it.
std::string Block(const std::string& name, const std::vector<Bar>& bars) {
  std::string out = fmt::format("${} << EOD\n", name);
  for (const Bar& bar : bars)
    out += fmt::format("{:.4f} {:.4f} {:.4f} {:.4f} {:.4f} {:.4f}\n", (bar.from + bar.to) / 2,
                       (bar.top + bar.bottom) / 2, bar.from, bar.to, bar.top, bar.bottom);
  return out + "EOD\n";
}

std::string PlotBars(const std::vector<std::vector<Bar>>& bars,
                     const std::vector<const char*>& colours) {
  std::string blocks, plots;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    if (bars[i].empty()) continue;
    blocks += Block(fmt::format("bars{}", i), bars[i]);
    plots += fmt::format(
        "{}$bars{} using 1:2:3:4:5:6 with boxxyerror fs solid noborder lc rgb '{}' notitle",
        plots.empty() ? "plot " : ", ", i, colours[i]);
  }
  return blocks + (plots.empty() ? "plot NaN notitle" : plots) + "\n";
}

double Clamped(double value) { return std::isfinite(value) ? std::clamp(value, 0.0, 1.0) : 0; }

}  // namespace

const char* Colour(std::size_t number) {
  constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f"};
  return kColours[number % std::size(kColours)];
}

Chart StackedBars(const Titles& titles, const std::vector<StackRow>& rows,
                  const std::vector<std::string>& parts, const std::vector<const char*>& colours) {
  Chart chart;
  const int legend_from = kTop + kRow * static_cast<int>(rows.size()) + kBottom;
  chart.height = legend_from;
  const std::string legend = Legend(Entries(parts, colours), &chart);
  std::vector<std::vector<Bar>> bars(parts.size());
  std::string rights;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    double sum = 0, at = 0;
    for (const double part : rows[i].parts) sum += part;
    for (std::size_t k = 0; k < parts.size() && sum > 0; ++k) {
      const double width = 100 * rows[i].parts[k] / sum;
      if (width > 0)
        bars[k].push_back(
            {at, at + width, static_cast<double>(i) + 0.18, static_cast<double>(i) + 0.82});
      at += width;
    }
    rights += Text(Quoted(rows[i].right, 12),
                   fmt::format("graph 1,first {:.2f}", static_cast<double>(i) + 0.5),
                   "left offset character 0.8,0");
  }
  const std::vector<std::string> names = NamesOf(rows);
  chart.commands =
      Place(chart, NamesWidth(names), kRight, kTop, chart.height - legend_from + kBottom) +
      Percents(titles, chart) + "unset grid\n" + RowNames(names) + rights + legend +
      PlotBars(bars, colours);
  return chart;
}

Chart GroupedBars(const Titles& titles, const std::vector<GroupRow>& rows,
                  const std::vector<std::string>& parts, const std::vector<const char*>& colours) {
  Chart chart;
  const int row_height = std::max(kRow, static_cast<int>(parts.size()) * 11 + 10);
  const int legend_from = kTop + row_height * static_cast<int>(rows.size()) + kBottom;
  chart.height = legend_from;
  const std::string legend = Legend(Entries(parts, colours), &chart);
  std::vector<std::vector<Bar>> bars(parts.size());
  std::string values;
  const double thick = 0.84 / static_cast<double>(std::max<std::size_t>(parts.size(), 1));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (!rows[i].values[k]) continue;
      const double width = 100 * Clamped(*rows[i].values[k]);
      const double top = static_cast<double>(i) + 0.08 + thick * static_cast<double>(k);
      bars[k].push_back({0, std::max(width, 0.3), top, top + thick * 0.9});
      values += Text(fmt::format("'{:.0f}'", width),
                     fmt::format("first {:.3f},first {:.3f}", width, top + thick * 0.45),
                     "left offset character 0.4,0 font ',9'");
    }
  const std::vector<std::string> names = NamesOf(rows);
  chart.commands = Place(chart, NamesWidth(names), 36, kTop, chart.height - legend_from + kBottom) +
                   Percents(titles, chart) + RowNames(names) + values + legend +
                   PlotBars(bars, colours);
  return chart;
}

Chart Dumbbells(const Titles& titles, const std::vector<DotRow>& rows, const std::string& from,
                const std::string& to) {
  Chart chart;
  const int legend_from = kTop + kRow * static_cast<int>(rows.size()) + kBottom;
  chart.height = legend_from;
  const std::string legend = Legend({{from, Colour(0)}, {to, Colour(4)}}, &chart);
  std::string data = "$dots << EOD\n", rights;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double a = 100 * Clamped(rows[i].from), b = 100 * Clamped(rows[i].to);
    const double y = static_cast<double>(i) + 0.5;
    data += fmt::format("{:.3f} {:.3f} {:.2f}\n", a, b, y);
    rights += Text(fmt::format("'{:.0f} / {:.0f}'", a, b), fmt::format("graph 1,first {:.2f}", y),
                   "left offset character 1.6,0");
  }
  const std::vector<std::string> names = NamesOf(rows);
  chart.commands =
      Place(chart, NamesWidth(names), kRight + 14, kTop, chart.height - legend_from + kBottom) +
      Percents(titles, chart) + RowNames(names) + rights + legend + data +
      fmt::format(
          "EOD\nplot $dots using 1:3:($2-$1):(0) with vectors nohead lw 2 lc rgb '{}' notitle, "
          "$dots using 2:3 with points pt 7 ps 1 lc rgb '{}' notitle, "
          "$dots using 1:3 with points pt 7 ps 1 lc rgb '{}' notitle\n",
          kPale, Colour(4), Colour(0));
  return chart;
}

Chart Radar(const std::string& title, const std::vector<std::string>& spokes,
            const std::vector<RadarSeries>& series) {
  CHECK(spokes.size() >= 3, "{} spokes", spokes.size());
  Chart chart;
  constexpr int kPlot = 330;
  chart.height = kPlot + kTop - 8;
  std::vector<std::pair<std::string, std::string>> entries;
  for (const RadarSeries& one : series) entries.emplace_back(one.name, Colour(one.colour));
  const std::string legend = Legend(entries, &chart);
  const auto angle = [&](std::size_t i) {
    return std::numbers::pi / 2 -
           2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(spokes.size());
  };
  const auto polygon = [&](const auto& radius) {
    std::string rows;
    for (std::size_t i = 0; i <= spokes.size(); ++i) {
      const std::size_t k = i % spokes.size();
      rows += fmt::format("{:.5f} {:.5f}\n", radius(k) * std::cos(angle(k)),
                          radius(k) * std::sin(angle(k)));
    }
    return rows;
  };
  std::string rings = "$rings << EOD\n";
  for (const double r : {0.25, 0.5, 0.75, 1.0})
    rings += polygon([&](std::size_t) { return r; }) + "\n";
  for (std::size_t i = 0; i < spokes.size(); ++i)
    rings += fmt::format("0 0\n{:.5f} {:.5f}\n\n", std::cos(angle(i)), std::sin(angle(i)));
  rings += "EOD\n";
  std::string labels = Heading(title, chart);
  for (const int ring : {25, 50, 75, 100})
    labels += fmt::format("set label '{}' at 0,{} left offset character 0.2,{} font ',9'\n", ring,
                          ring / 100.0, ring == 100 ? -0.5 : 0.4);
  for (std::size_t i = 0; i < spokes.size(); ++i) {
    const double x = std::cos(angle(i)), y = std::sin(angle(i));
    labels += Text(Quoted(spokes[i], 16), fmt::format("{:.4f},{:.4f}", 1.07 * x, 1.1 * y),
                   x > 0.1    ? "left"
                   : x < -0.1 ? "right"
                              : "center");
  }
  std::string blocks,
      plots = fmt::format("plot $rings using 1:2 with lines lw 0.7 lc rgb '{}' notitle", kPale);
  for (std::size_t i = 0; i < series.size(); ++i) {
    blocks += fmt::format("$shape{} << EOD\n", i) +
              polygon([&](std::size_t k) { return Clamped(series[i].values[k]); }) + "EOD\n";
    plots += fmt::format(
        ", $shape{0} using 1:2 with filledcurves closed fs transparent solid 0.06 noborder lc rgb "
        "'{1}' notitle, $shape{0} using 1:2 with lines lw 2 lc rgb '{1}' notitle",
        i, Colour(series[i].colour));
  }
  // 480 x 330 pixels show 2.4 in height: as many to the side as keep circles round.
  chart.commands = Place(chart, 0, 0, kTop - 8, chart.height - kPlot - (kTop - 8)) +
                   fmt::format(
                       "unset border\nunset tics\nunset grid\nset yrange [-1.2:1.2]\nset "
                       "xrange [{0:.4f}:{1:.4f}]\n",
                       -1.2 * chart.width / kPlot, 1.2 * chart.width / kPlot) +
                   labels + legend + rings + blocks + plots + "\n";
  return chart;
}

Chart Lines(const std::vector<LineSeries>& series, const LineAxes& axes) {
  Chart chart;
  chart.height = 326;
  constexpr double kPlotTop = 52, kPlotBottom = 48;
  const double plot_height = chart.height - kPlotTop - kPlotBottom;
  double low = INFINITY, high = -INFINITY, x_low = INFINITY, x_high = -INFINITY;
  std::vector<std::string> names;
  for (const LineSeries& one : series) {
    names.push_back(one.name);
    for (const auto& [x, y] : one.points) {
      low = std::min(low, y);
      high = std::max(high, y);
      x_low = std::min(x_low, x);
      x_high = std::max(x_high, x);
    }
  }
  if (axes.y_range) std::tie(low, high) = *axes.y_range;
  if (axes.log) {
    low /= 1.3;
    high *= 1.3;
  }
  if (x_low == x_high) {
    x_low = axes.log ? x_low / 2 : x_low - 0.5;
    x_high = axes.log ? x_high * 2 : x_high + 0.5;
  }
  const auto scaled = [&](double y) { return axes.log ? std::log(y) : y; };
  // Labels at the lines' ends, in pixels from the top, moved apart where they would overlap.
  struct End {
    double y;
    std::size_t number;
  };
  std::vector<End> ends;
  for (std::size_t i = 0; i < series.size(); ++i)
    if (!series[i].points.empty())
      ends.push_back({(scaled(high) - scaled(series[i].points.back().second)) /
                          (scaled(high) - scaled(low)) * plot_height,
                      i});
  std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) {
    return a.y < b.y || (a.y == b.y && a.number < b.number);
  });
  constexpr double kApart = 15;
  for (std::size_t i = 0; i < ends.size(); ++i)
    ends[i].y = std::max(ends[i].y, i == 0 ? 0 : ends[i - 1].y + kApart);
  double limit = plot_height + kApart;
  for (std::size_t i = ends.size(); i-- > 0; limit -= kApart)
    ends[i].y = std::min(ends[i].y, limit);

  std::string labels, blocks, plots;
  for (const End& end : ends) {
    const LineSeries& one = series[end.number];
    labels += Text(Quoted(one.name, kLongestName),
                   fmt::format("graph 1,screen {:.4f}", 1 - (kPlotTop + end.y) / chart.height),
                   one.plain ? "left offset character 0.8,0"
                             : fmt::format("left offset character 0.8,0 textcolor rgb '{}'",
                                           Colour(one.colour))
                                   .c_str());
  }
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (series[i].points.empty()) continue;
    blocks += fmt::format("$line{} << EOD\n", i);
    for (const auto& [x, y] : series[i].points) blocks += fmt::format("{:.6g} {:.6g}\n", x, y);
    blocks += "EOD\n";
    plots += plots.empty() ? "plot " : ", ";
    plots += series[i].plain
                 ? fmt::format("$line{} using 1:2 with lines lw 2 dt 2 lc rgb 'black' notitle", i)
                 : fmt::format(
                       "$line{} using 1:2 with linespoints lw 1.8 pt 7 ps 0.6 lc rgb '{}' notitle",
                       i, Colour(series[i].colour));
  }
  if (plots.empty()) plots = "plot NaN notitle";
  std::string tics;
  for (const auto& [x, name] : axes.x_tics) {
    tics += tics.empty() ? "" : ", ";
    std::string format;  // a tic's label is a format
    for (const char c : name) format += c == '%' ? "%%" : std::string(1, c);
    tics += fmt::format("{} {:.6g}", Quoted(format, 16), x);
  }
  chart.commands =
      Place(chart, 46, NamesWidth(names), kPlotTop, kPlotBottom) +
      fmt::format(
          "set border 1\nset grid ytics lt 1 lw 0.6 lc rgb '{}'\nset xrange "
          "[{:.6g}:{:.6g}]\nset yrange [{:.6g}:{:.6g}]\nset ytics nomirror scale 0.5\nset "
          "xtics nomirror scale 0.5{}\nunset mxtics\nunset mytics\n{}",
          kPale, x_low, x_high, low, high, tics.empty() ? "" : " (" + tics + ")",
          axes.log ? "set logscale xy 10\n" : "") +
      Heading(axes.title, chart) +
      Text(Quoted(axes.y), fmt::format("screen 0.012,{:.4f}", 1 - 37.0 / chart.height), "left") +
      fmt::format("set xlabel {} offset 0,0.3\n", Quoted(axes.x)) + labels + blocks + plots + "\n";
  return chart;
}

}  // namespace allranks::report
