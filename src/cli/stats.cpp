// --stats as a table.
#include "cli/stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "node/findings.h"

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

std::string Percent(const json& share) {
  return share.is_null() ? "-" : fmt::format("{:.1f}%", share.get<double>() * 100);
}

// The movers that moved something, as the JSON names them.
std::vector<std::string> MoversOf(const json& stats) {
  std::vector<std::string> movers;
  for (const char* mover : {"sm", "tma", "copy_engine", "multicast", "nic"})
    if (stats["movers"][mover]["wire_bytes"].get<std::uint64_t>() != 0) movers.emplace_back(mover);
  return movers;
}

// One row per direction in which something went.
std::string Links(const json& stats) {
  if (stats["links"].empty()) return "";
  const std::vector<std::string> movers = MoversOf(stats);
  struct Row {
    std::string link;
    const json* direction;
  };
  std::vector<Row> rows;
  std::size_t width = 4;
  for (const json& link : stats["links"]) {
    for (const json& direction : link["directions"]) {
      if (direction["wire_bytes"] == 0 && direction["poll_bytes"] == 0) continue;
      rows.push_back({fmt::format("{} > {}", direction["from"].get<std::string>(),
                                  direction["to"].get<std::string>()),
                      &direction});
      width = std::max(width, rows.back().link.size());
    }
  }
  std::string out = fmt::format("{:<{}}", "link", width);
  for (const std::string& mover : movers) out += fmt::format(" {:>14}", mover);
  out += fmt::format(" {:>14} {:>8} {:>7} {:>7} {:>12}\n", "wire bytes", "payload", "use", "busy",
                     "poll bytes");
  for (std::size_t r = 0; r < std::min(rows.size(), kMaxRows); ++r) {
    const json& direction = *rows[r].direction;
    out += fmt::format("{:<{}}", rows[r].link, width);
    for (const std::string& mover : movers)
      out += fmt::format(" {:>14}", direction["bytes"][mover].get<std::uint64_t>());
    out += fmt::format(
        " {:>14} {:>8} {:>7} {:>7} {:>12}\n", direction["wire_bytes"].get<std::uint64_t>(),
        Percent(direction["efficiency"]), Percent(direction["use"]), Percent(direction["busy_use"]),
        direction["poll_bytes"].get<std::uint64_t>());
  }
  if (rows.size() > kMaxRows) out += fmt::format("and {} more\n", rows.size() - kMaxRows);
  return out;
}

std::string Movers(const json& stats) {
  const std::vector<std::string> movers = MoversOf(stats);
  if (movers.empty()) return "";
  std::string out = fmt::format("{:<12} {:>14} {:>16} {:>14} {:>8}\n", "mover", "bytes moved",
                                "bytes x links", "wire bytes", "payload");
  for (const std::string& mover : movers) {
    const json& record = stats["movers"][mover];
    out +=
        fmt::format("{:<12} {:>14} {:>16} {:>14} {:>8}\n", mover,
                    record["bytes"].get<std::uint64_t>(), record["link_bytes"].get<std::uint64_t>(),
                    record["wire_bytes"].get<std::uint64_t>(), Percent(record["efficiency"]));
  }
  return out;
}

}  // namespace

std::string Indented(const std::string& text) {
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  return (parsed.is_discarded() ? text : parsed.dump(2)) + "\n";
}

std::vector<node::Finding> FindingsIn(const std::string& text) {
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed.contains("findings")) return {};
  std::vector<node::Finding> findings = node::FindingsFromJson(parsed["findings"].dump());
  for (node::Finding& finding : findings)
    for (node::FindingAccess& access : finding.accesses)
      access.alone = parsed.value("processes", 0) == 1;
  return findings;
}

std::string CheckedIn(const std::string& text) {
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return "";
  const std::size_t kernels =
      parsed["kernels"].size() + parsed.value("kernels_omitted", std::size_t{0});
  std::uint64_t blocks = 0;
  for (const json& kernel : parsed["kernels"])
    blocks += kernel["grid"][0].get<std::uint64_t>() * kernel["grid"][1].get<std::uint64_t>() *
              kernel["grid"][2].get<std::uint64_t>();
  const json checked = parsed.value("checked", json::object());
  return fmt::format("{} kernel{}, {} block{}, {} accesses", kernels, kernels == 1 ? "" : "s",
                     blocks, blocks == 1 ? "" : "s", checked.value("accesses", std::uint64_t{0}));
}

std::vector<std::string> RefusedIn(const std::string& text) {
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return {};
  return parsed.value("refused_images", std::vector<std::string>());
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
  if (stats.contains("ptx_above_device"))
    out += fmt::format(
        "  PTX for compute_{} is executed: the program has none for this device or an earlier "
        "one\n",
        stats["ptx_above_device"].get<std::uint32_t>());
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
  out += Links(stats);
  out += Movers(stats);
  for (const json& fault : stats["faults"])
    out += fmt::format("fault on device {}: {}\n", fault["device"].get<int>(),
                       fault["message"].get<std::string>());
  return out;
}

}  // namespace allranks::cli
