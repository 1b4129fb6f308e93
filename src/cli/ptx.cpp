// `allranks ptx`: prints a PtxReport (ptx_report.h) as text or JSON.
#include "cli/ptx.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/command.h"
#include "cli/ptx_report.h"

namespace allranks::cli {
namespace {

using nlohmann::json;

double Percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 100.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

void PrintKernels(const PtxReport& report) {
  std::string image;
  for (const PtxKernel& kernel : report.kernels) {
    if (kernel.image != image) {
      image = kernel.image;
      fmt::print("{}\n", image);
    }
    fmt::print("  {} {}: {}{} registers, {} bytes shared, {} bytes local, {} instructions\n",
               kernel.is_entry ? "kernel" : "function", kernel.name,
               kernel.registers_known ? "" : "about ", kernel.registers, kernel.shared,
               kernel.local, kernel.instructions);
    if (!kernel.error.empty()) fmt::print("    cannot be decoded: {}\n", kernel.error);
    for (const PtxKernel::Missing& missing : kernel.missing) {
      fmt::print("    unsupported: {} (x{}), first at {}\n", missing.form, missing.count,
                 missing.at);
    }
  }
}

void PrintCoverage(const PtxReport& report) {
  const std::uint64_t all = report.forms.size();
  fmt::print("{} distinct instruction forms: {:.2f} % parsed ({}), {:.2f} % executable ({})\n", all,
             Percent(report.Parsed(), all), report.Parsed(), Percent(report.Executable(), all),
             report.Executable());
  for (const auto& [name, form] : report.forms) {
    if (!form.parsed) {
      fmt::print("  not parsed: {} (x{})\n", name, form.count);
    } else if (form.unsupported != 0) {
      fmt::print("  not executable: {} ({} of {}), first at {}{}\n", name, form.unsupported,
                 form.count, form.first, form.why.empty() ? "" : ": " + form.why);
    }
  }
}

json Json(const PtxReport& report) {
  json out = {{"version", 1}, {"errors", report.errors}, {"kernels", json::array()}};
  for (const PtxKernel& kernel : report.kernels) {
    json missing = json::array();
    for (const PtxKernel::Missing& one : kernel.missing) {
      missing.push_back({{"form", one.form}, {"count", one.count}, {"first", one.at}});
    }
    out["kernels"].push_back({{"image", kernel.image},
                              {"name", kernel.name},
                              {"entry", kernel.is_entry},
                              {"registers", kernel.registers},
                              {"registers_known", kernel.registers_known},
                              {"shared_bytes", kernel.shared},
                              {"local_bytes", kernel.local},
                              {"instructions", kernel.instructions},
                              {"error", kernel.error},
                              {"unsupported", missing}});
  }
  json not_parsed = json::array(), not_executable = json::array();
  for (const auto& [name, form] : report.forms) {
    if (!form.parsed) {
      not_parsed.push_back({{"form", name}, {"count", form.count}});
    } else if (form.unsupported != 0) {
      not_executable.push_back({{"form", name},
                                {"count", form.count},
                                {"unsupported", form.unsupported},
                                {"first", form.first},
                                {"because", form.why}});
    }
  }
  out["coverage"] = {{"forms", report.forms.size()},
                     {"parsed", report.Parsed()},
                     {"executable", report.Executable()},
                     {"not_parsed", not_parsed},
                     {"not_executable", not_executable}};
  return out;
}

}  // namespace

int Ptx(const PtxOptions& options) {
  if (options.min_executable > 0 && !options.coverage)
    return Usage("--min-executable has an effect only with --coverage: add it");
  PtxReport report;
  bool failed = false;
  for (const std::string& path : options.files) {
    Result<std::vector<PtxImage>> images = ReadPtxImages(path);
    if (!images) {
      report.errors.push_back(images.error().message);
      continue;
    }
    for (PtxImage& image : *images) AddToReport(std::move(image), &report);
  }
  if (options.json) {
    fmt::print("{}\n", Json(report).dump(2, ' ', false, json::error_handler_t::replace));
  } else if (options.coverage) {
    PrintCoverage(report);
  } else {
    PrintKernels(report);
  }
  for (const std::string& error : report.errors) fmt::print(stderr, "allranks: {}\n", error);
  failed = !report.errors.empty();
  const double executable = Percent(report.Executable(), report.forms.size());
  if (executable < options.min_executable) {
    fmt::print(stderr,
               "allranks: {:.2f} % of the forms are executable; --min-executable requires {:g} %\n",
               executable, options.min_executable);
    failed = true;
  }
  return failed ? 1 : 0;
}

}  // namespace allranks::cli
