// Charts as gnuplot commands, all in one style: narrow enough for a phone, labels at what they
// name, colours that all kinds of colour vision tell apart, nothing but data ink. plots.cpp says
// what is drawn; here is how.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace allranks::report {

struct Chart {
  int width = 480, height = 0;  // of the SVG, in pixels
  std::string commands;         // between `set output` and the next chart; has its own settings
};

// Above a plot, and below its x axis.
struct Titles {
  std::string title, x;
};

// A series' colour, by its number.
const char* Colour(std::size_t number);

// One horizontal bar per row, of parts that make up 100 %.
struct StackRow {
  std::string name;
  std::vector<double> parts;
  std::string right;  // said at its end
};
Chart StackedBars(const Titles& titles, const std::vector<StackRow>& rows,
                  const std::vector<std::string>& parts, const std::vector<const char*>& colours);

// Per row a group of bars from 0 to 1, one per part; a part that is absent has none.
struct GroupRow {
  std::string name;
  std::vector<std::optional<double>> values;
};
Chart GroupedBars(const Titles& titles, const std::vector<GroupRow>& rows,
                  const std::vector<std::string>& parts, const std::vector<const char*>& colours);

// Per row two dots from 0 to 1, and what lies between them.
struct DotRow {
  std::string name;
  double from = 0, to = 0;
};
Chart Dumbbells(const Titles& titles, const std::vector<DotRow>& rows, const std::string& from,
                const std::string& to);

// One polygon per series over spokes from 0 to 1, which are its axes. At least three spokes.
struct RadarSeries {
  std::string name;
  std::size_t colour = 0;
  std::vector<double> values;
};
Chart Radar(const std::string& title, const std::vector<std::string>& spokes,
            const std::vector<RadarSeries>& series);

struct LineSeries {
  std::string name;
  std::size_t colour = 0;
  bool plain = false;  // ink, dashed, without dots: a bound
  std::vector<std::pair<double, double>> points;
};
struct LineAxes {
  bool log = false;
  std::string title, x, y;
  std::optional<std::pair<double, double>> y_range;    // else from the data
  std::vector<std::pair<double, std::string>> x_tics;  // else gnuplot's
};
Chart Lines(const std::vector<LineSeries>& series, const LineAxes& axes);

}  // namespace allranks::report
