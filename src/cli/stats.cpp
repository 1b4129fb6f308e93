// --stats as a table.
#include "cli/stats.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace allranks::cli {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxRows = 40;

std::string Dim(const json& dim) {
  std::string text = fmt::format("{}", dim[0].get<std::uint64_t>());
  const auto y = dim[1].get<std::uint64_t>(), z = dim[2].get<std::uint64_t>();
  if (y != 1 || z != 1) text += fmt::format("x{}", y);
  if (z != 1) text += fmt::format("x{}", z);
  return text;
}

std::string Us(std::int64_t ns) { return fmt::format("{:.3f}", static_cast<double>(ns) / 1e3); }

}  // namespace

std::string Indented(const std::string& text) {
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  return (parsed.is_discarded() ? text : parsed.dump(2)) + "\n";
}

std::string StatsTable(const std::string& text) {
  const json stats = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (stats.is_discarded()) return "";
  std::string out;
  out +=
      fmt::format("allranks: {} us of virtual time on {}{}\n",
                  Us(stats["virtual_ns"].get<std::int64_t>()), stats["profile"].get<std::string>(),
                  stats["deterministic"].get<bool>() ? "" : " (not deterministic)");
  if (stats.contains("nondeterministic_because"))
    for (const json& reason : stats["nondeterministic_because"])
      out += fmt::format("  because {}\n", reason.get<std::string>());
  out += fmt::format("{} warp instructions, {} thread instructions, {} copies of {} bytes\n",
                     stats["warp_instructions"].get<std::uint64_t>(),
                     stats["thread_instructions"].get<std::uint64_t>(),
                     stats["copies"]["count"].get<std::uint64_t>(),
                     stats["copies"]["bytes"].get<std::uint64_t>());
  const json& kernels = stats["kernels"];
  if (!kernels.empty())
    out += fmt::format("{:>4} {:>4} {:>12} {:>10} {:>12} {:>12} {:>14} {:>13} {:>13}  {}\n", "rank",
                       "dev", "grid", "block", "start us", "end us", "thread instr", "bytes read",
                       "bytes written", "kernel");
  std::size_t rows = 0;
  for (const json& kernel : kernels) {
    if (rows++ == kMaxRows) {
      out += fmt::format("and {} more\n", kernels.size() - kMaxRows);
      break;
    }
    std::string name = kernel["name"].get<std::string>();
    if (name.size() > 60) name = name.substr(0, 57) + "...";
    out += fmt::format("{:>4} {:>4} {:>12} {:>10} {:>12} {:>12} {:>14} {:>13} {:>13}  {}\n",
                       kernel["rank"].get<int>(), kernel["device"].get<int>(), Dim(kernel["grid"]),
                       Dim(kernel["block"]), Us(kernel["start_ns"].get<std::int64_t>()),
                       kernel["end_ns"].is_null() ? "-" : Us(kernel["end_ns"].get<std::int64_t>()),
                       kernel["thread_instructions"].get<std::uint64_t>(),
                       kernel["bytes_read"].get<std::uint64_t>(),
                       kernel["bytes_written"].get<std::uint64_t>(), name);
  }
  for (const json& fault : stats["faults"])
    out += fmt::format("fault on device {}: {}\n", fault["device"].get<int>(),
                       fault["message"].get<std::string>());
  return out;
}

}  // namespace allranks::cli
