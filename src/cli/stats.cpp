// --stats as a table.
#include "cli/stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/text_table.h"
#include "node/findings.h"

namespace allranks::cli {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxRows = 40;

constexpr int kInvalidPtx = 218;  // CUDA_ERROR_INVALID_PTX

constexpr std::pair<int, const char*> kErrorNames[] = {
#define ALLRANKS_ERROR(number, driver, runtime, text) {number, driver},
#include "shim/errors.inc"
#undef ALLRANKS_ERROR
};

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

// The summary: one row per name, the slowest first.
std::string ByKernel(const json& stats) {
  using Align = TextTable::Align;
  TextTable table({{"calls"},
                   {"total us"},
                   {"median us"},
                   {"read"},
                   {"written"},
                   {"remote"},
                   {"link"},
                   {"HBM"},
                   {"  kernel", Align::kLeft, true}});
  const json& names = stats["by_kernel"];
  for (std::size_t k = 0; k < std::min(names.size(), kMaxRows); ++k) {
    const json& name = names[k];
    const auto bytes = [&](const char* member) { return Bytes(name[member].get<std::uint64_t>()); };
    const bool unfinished = name["unfinished"].get<std::uint64_t>() != 0;
    table.Add({fmt::format("{}", name["calls"].get<std::uint64_t>()),
               Us(name["total_ns"].get<std::int64_t>()), Us(name["median_ns"].get<std::int64_t>()),
               bytes("bytes_read"), bytes("bytes_written"), bytes("remote_bytes"),
               Percent(name["link_share"]), Percent(name["hbm_share"]),
               (unfinished ? "* " : "  ") + name["name"].get<std::string>()});
  }
  if (table.empty()) return "";
  std::string out = table.Text();
  if (names.size() > kMaxRows) out += fmt::format("and {} more\n", names.size() - kMaxRows);
  if (std::ranges::any_of(names, [](const json& name) { return name["unfinished"] != 0; }))
    out += "* did not end; counted until the end of the run\n";
  return out + "\n";
}

// What the program has marked by NVTX.
std::string Ranges(const json& stats) {
  TextTable table(
      {{"calls"}, {"total us"}, {"longest us"}, {"  range", TextTable::Align::kLeft, true}});
  const json& ranges = stats["ranges"];
  for (std::size_t r = 0; r < std::min(ranges.size(), kMaxRows); ++r) {
    const json& range = ranges[r];
    std::string name = range["name"].get<std::string>();
    if (name.empty()) name = "(unnamed)";
    if (const auto domain = range["domain"].get<std::string>(); !domain.empty())
      name = fmt::format("{}: {}", domain, name);
    table.Add({fmt::format("{}", range["calls"].get<std::uint64_t>()),
               Us(range["total_ns"].get<std::int64_t>()),
               Us(range["longest_ns"].get<std::int64_t>()), "  " + name});
  }
  if (table.empty()) return "";
  std::string out = table.Text();
  if (ranges.size() > kMaxRows) out += fmt::format("and {} more\n", ranges.size() - kMaxRows);
  return out + "\n";
}

std::string Kernels(const json& stats) {
  const json& kernels = stats["kernels"];
  TextTable table({{"rank"},
                   {"dev"},
                   {"grid"},
                   {"block"},
                   {"start us"},
                   {"end us"},
                   {"thread instr"},
                   {"bytes read"},
                   {"bytes written"},
                   {"  kernel", TextTable::Align::kLeft, true}});
  for (std::size_t k = 0; k < std::min(kernels.size(), kMaxRows); ++k) {
    const json& kernel = kernels[k];
    const auto count = [&](const char* member) {
      return fmt::format("{}", kernel[member].get<std::uint64_t>());
    };
    table.Add({fmt::format("{}", kernel["rank"].get<int>()),
               fmt::format("{}", kernel["device"].get<int>()), Dim(kernel["grid"]),
               Dim(kernel["block"]), Us(kernel["start_ns"].get<std::int64_t>()),
               kernel["end_ns"].is_null() ? "-" : Us(kernel["end_ns"].get<std::int64_t>()),
               count("thread_instructions"), count("bytes_read"), count("bytes_written"),
               "  " + kernel["name"].get<std::string>()});
  }
  if (table.empty()) return "";
  std::string out = table.Text();
  if (kernels.size() > kMaxRows) out += fmt::format("and {} more\n", kernels.size() - kMaxRows);
  return out;
}

// One row per direction in which something went; `bytes` writes a number of them.
TextTable LinkTable(const json& stats, const std::vector<std::string>& movers,
                    std::string (*bytes)(std::uint64_t), std::size_t* left_out) {
  std::vector<TextTable::Column> columns = {{"link", TextTable::Align::kLeft, true}};
  for (const std::string& mover : movers) columns.push_back({mover});
  for (const char* title : {"wire bytes", "payload", "use", "busy", "poll bytes"})
    columns.push_back({title});
  TextTable table(std::move(columns));
  std::size_t rows = 0;
  for (const json& link : stats["links"]) {
    for (const json& direction : link["directions"]) {
      if (direction["wire_bytes"] == 0 && direction["poll_bytes"] == 0) continue;
      if (++rows > kMaxRows) continue;
      std::vector<std::string> cells = {fmt::format("{} > {}", direction["from"].get<std::string>(),
                                                    direction["to"].get<std::string>())};
      for (const std::string& mover : movers)
        cells.push_back(bytes(direction["bytes"][mover].get<std::uint64_t>()));
      cells.push_back(bytes(direction["wire_bytes"].get<std::uint64_t>()));
      for (const char* share : {"efficiency", "use", "busy_use"})
        cells.push_back(Percent(direction[share]));
      cells.push_back(bytes(direction["poll_bytes"].get<std::uint64_t>()));
      table.Add(std::move(cells));
    }
  }
  *left_out = rows > kMaxRows ? rows - kMaxRows : 0;
  return table;
}

std::string Links(const json& stats) {
  const std::vector<std::string> movers = MoversOf(stats);
  std::size_t left_out = 0;
  TextTable table = LinkTable(
      stats, movers, [](std::uint64_t bytes) { return fmt::format("{}", bytes); }, &left_out);
  if (table.empty()) return "";
  if (table.Width() > kTextWidth) table = LinkTable(stats, movers, &Bytes, &left_out);
  std::string out = table.Text();
  if (left_out != 0) out += fmt::format("and {} more\n", left_out);
  return out;
}

std::string Movers(const json& stats) {
  TextTable table({{"mover", TextTable::Align::kLeft},
                   {"bytes moved"},
                   {"bytes x links"},
                   {"wire bytes"},
                   {"payload"}});
  for (const std::string& mover : MoversOf(stats)) {
    const json& record = stats["movers"][mover];
    const auto count = [&](const char* member) {
      return fmt::format("{}", record[member].get<std::uint64_t>());
    };
    table.Add({mover, count("bytes"), count("link_bytes"), count("wire_bytes"),
               Percent(record["efficiency"])});
  }
  return table.empty() ? "" : table.Text();
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

std::vector<Failed> FaultsIn(const std::string& text) {
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<Failed> faults;
  if (!parsed.is_object()) return faults;
  const bool several = parsed.value("processes", 1) > 1;
  for (const json& fault : parsed.value("faults", json::array())) {
    const int status = fault["status"].get<int>();
    // It could not be decoded. Libraries ask for many kernels that they never launch.
    if (status == kInvalidPtx) continue;
    std::string name = std::to_string(status);
    for (const auto& [number, known] : kErrorNames)
      if (number == status && known != nullptr) name = known;
    const std::string message = fault["message"].get<std::string>();
    faults.push_back({status, message,
                      fmt::format("{}device {}: {} ({})",
                                  several ? fmt::format("rank {}, ", fault["rank"].get<int>()) : "",
                                  fault["device"].get<int>(), message, name)});
  }
  return faults;
}

std::string StatsTable(const std::string& text) {
  const json stats = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (stats.is_discarded()) return "";
  std::string out = ByKernel(stats) + Ranges(stats);
  const auto line = [&](std::size_t indent, const std::string& words) {
    out += Wrapped(words, indent) + "\n";
  };
  line(2,
       fmt::format("allranks: {} us of virtual time on {}{}",
                   Us(stats["virtual_ns"].get<std::int64_t>()), stats["profile"].get<std::string>(),
                   stats["deterministic"].get<bool>() ? "" : " (not deterministic)"));
  if (stats.contains("nondeterministic_because"))
    for (const json& reason : stats["nondeterministic_because"])
      line(4, fmt::format("  because {}", reason.get<std::string>()));
  if (stats.contains("ptx_above_device"))
    line(4, fmt::format("  PTX for compute_{} is executed: the program has none for this device or "
                        "an earlier one",
                        stats["ptx_above_device"].get<std::uint32_t>()));
  line(2, fmt::format("{} warp instructions, {} thread instructions, {} copies of {} bytes",
                      stats["warp_instructions"].get<std::uint64_t>(),
                      stats["thread_instructions"].get<std::uint64_t>(),
                      stats["copies"]["count"].get<std::uint64_t>(),
                      stats["copies"]["bytes"].get<std::uint64_t>()));
  out += Kernels(stats) + Links(stats) + Movers(stats);
  for (const json& fault : stats["faults"])
    line(2, fmt::format("fault on device {}: {}", fault["device"].get<int>(),
                        fault["message"].get<std::string>()));
  return out;
}

}  // namespace allranks::cli
