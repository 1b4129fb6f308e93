#include "cli/models.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/paths.h"
#include "cli/places.h"
#include "cli/usage.h"
#include "model/entry.h"

namespace allranks::cli {
namespace {

constexpr char kHelp[] =
    R"(Lists the models of the installed models.toml and of ./models.toml, whose entries replace those of
the same name. Keys come from environment variables and are never printed. The models oracle, nop,
material:KIND, replay:FOLDER and command:LINE need no file and no key. docs/models.md describes the
file and the interface of a command.

Environment:
  ALLRANKS_MODELS  the only file to read, instead of ./models.toml and the installed one

The JSON has one line per model with the members name, file (where its table is), protocol, provider,
  model, endpoint, key_variable, key (set, missing or -), open_weights, accepts_temperature and price
  (input, cached_input, output: dollars per million tokens; null: unknown).)";

// "-": none is needed; "set"; "missing".
std::string KeyOf(const model::Entry& entry) {
  if (entry.key_variable.empty()) return "-";
  const char* value = std::getenv(entry.key_variable.c_str());
  return value != nullptr && *value != '\0' ? "set" : "missing";
}

std::string Dollars(double price) { return fmt::format("{}", price); }

nlohmann::ordered_json ToJson(const model::Entry& entry) {
  nlohmann::ordered_json json = {{"name", entry.name},
                                 {"file", entry.file},
                                 {"protocol", model::NameOf(entry.protocol)},
                                 {"provider", entry.provider},
                                 {"model", entry.model.empty() ? entry.source : entry.model},
                                 {"endpoint", entry.endpoint},
                                 {"key_variable", entry.key_variable},
                                 {"key", KeyOf(entry)},
                                 {"open_weights", entry.open_weights},
                                 {"accepts_temperature", entry.accepts_temperature},
                                 {"price", nullptr}};
  if (entry.price.known) {
    json["price"] = {{"input", entry.price.input},
                     {"cached_input", entry.price.cached_input},
                     {"output", entry.price.output}};
  }
  return json;
}

// `files` are numbered from 1.
void PrintTable(const std::vector<std::filesystem::path>& files,
                const std::vector<model::Entry>& entries) {
  std::vector<std::vector<std::string>> rows = {
      {"name", "file", "protocol", "provider", "key", "weights", "input", "cached", "output"}};
  for (const model::Entry& entry : entries) {
    const bool known = entry.price.known;
    const std::string key = KeyOf(entry);
    const auto file = std::find(files.begin(), files.end(), std::filesystem::path(entry.file));
    rows.push_back({entry.name, std::to_string(file - files.begin() + 1),
                    model::NameOf(entry.protocol), entry.provider.empty() ? "-" : entry.provider,
                    key == "-" ? key : entry.key_variable + " " + key,
                    entry.open_weights ? "open" : "-", known ? Dollars(entry.price.input) : "?",
                    known ? Dollars(entry.price.cached_input) : "?",
                    known ? Dollars(entry.price.output) : "?"});
  }
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i < 6 ? fmt::format("{:<{}}  ", row[i], widths[i])
                    : fmt::format("{:>{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
  fmt::print("\nPrices are in dollars per million tokens; ? means unknown.\n");
}

class ModelsCommand : public Command {
 public:
  explicit ModelsCommand(CLI::App* app) {
    command_ = app->add_subcommand("models", "List the available models");
    command_->footer(kHelp);
    command_->formatter(std::make_shared<UsageFormatter>("models [OPTIONS]"));
    command_->add_option("--models-file", file_, "The only file to read")
        ->option_text("FILE")
        ->check(InputFile());
    command_->add_flag("--json", json_, "Print JSON, one line per model");
  }

  int Run() const override {
    const Result<std::vector<std::filesystem::path>> files = FindModelsFiles(file_);
    if (!files) return Usage(files.error().message);
    const auto entries = model::LoadModels(*files);
    if (!entries) return Usage(entries.error().message);
    if (json_) {
      for (const model::Entry& entry : *entries)
        fmt::print("{}\n", ToJson(entry).dump(-1, ' ', false,
                                              nlohmann::ordered_json::error_handler_t::replace));
    } else {
      for (std::size_t i = 0; i < files->size(); ++i)
        fmt::print("file {}: {}\n", i + 1, (*files)[i].string());
      fmt::print("\n");
      PrintTable(*files, *entries);
    }
    std::fflush(stdout);
    return 0;
  }

 private:
  std::string file_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeModelsCommand(CLI::App* app) {
  return std::make_unique<ModelsCommand>(app);
}

}  // namespace allranks::cli
