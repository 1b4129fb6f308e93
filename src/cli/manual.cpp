#include "cli/manual.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "cli/version.h"

namespace allranks::cli {
namespace {

CommandLevel::Word WordOf(const CLI::Option& option) {
  CommandLevel::Word word;
  for (const std::string& name : option.get_snames()) word.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) word.names.push_back("--" + name);
  word.about = option.get_description();
  if (option.get_items_expected_max() != 0) {
    word.value = option.get_option_text();
    if (word.value.empty()) word.value = option.get_type_name();
    if (word.value.empty()) word.value = "VALUE";
  }
  if (word.names.empty()) word.names.push_back(option.get_name());
  return word;
}

void Collect(const CLI::App& app, const std::string& path, std::vector<CommandLevel>* levels) {
  CommandLevel level;
  level.path = path;
  level.about = app.get_description();
  level.text = app.get_footer();
  const std::string help = app.help();
  constexpr std::string_view kUsage = "Usage: ";
  if (const std::size_t at = help.find(kUsage); at != std::string::npos)
    level.usage = help.substr(at + kUsage.size(), help.find('\n', at) - at - kUsage.size());
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? level.arguments : level.options).push_back(WordOf(*option));
  }
  std::vector<const CLI::App*> below;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;  // hidden
    level.commands.push_back({{command->get_name()}, "", command->get_description()});
    below.push_back(command);
  }
  levels->push_back(std::move(level));
  for (const CLI::App* command : below)
    Collect(*command, path.empty() ? command->get_name() : path + " " + command->get_name(),
            levels);
}

// --- troff -------------------------------------------------------------------------------------

std::string Troff(const std::string& text) {
  std::string result;
  bool begins = true;  // a line, where dots and quotes would be commands
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    begins = c == '\n';
  }
  return result;
}

std::string TroffList(const std::vector<CommandLevel::Word>& words) {
  std::string text;
  for (const CommandLevel::Word& word : words) {
    std::string names;
    for (const std::string& name : word.names)
      names += (names.empty() ? "\\fB" : ", \\fB") + Troff(name) + "\\fR";
    text += fmt::format(".TP\n{} {}\n{}\n", names, Troff(word.value), Troff(word.about));
  }
  return text;
}

std::string Verbatim(const std::string& text) {
  return text.empty() ? "" : fmt::format(".nf\n{}\n.fi\n", Troff(text));
}

}  // namespace

std::vector<CommandLevel> LevelsOf(const CLI::App& app) {
  std::vector<CommandLevel> levels;
  Collect(app, "", &levels);
  return levels;
}

std::string ManPage(const std::vector<CommandLevel>& levels, const std::string& command) {
  const std::string name = command.empty() ? "allranks" : "allranks-" + command;
  std::string text;
  for (const CommandLevel& level : levels) {
    if (level.path == command) {
      text += fmt::format(".TH {} 1 \"\" \"AllRanks {}\" \"\"\n.SH NAME\n{} \\- {}\n", Troff(name),
                          Version(), Troff(name), Troff(level.about));
      text += fmt::format(".SH SYNOPSIS\n{}", Verbatim(level.usage));
      if (!level.commands.empty()) text += ".SH COMMANDS\n" + TroffList(level.commands);
      if (!level.arguments.empty()) text += ".SH ARGUMENTS\n" + TroffList(level.arguments);
      if (!level.options.empty()) text += ".SH OPTIONS\n" + TroffList(level.options);
      if (!level.text.empty()) text += ".SH DESCRIPTION\n" + Verbatim(level.text);
    } else if (!command.empty() && level.path.starts_with(command + " ")) {
      text += fmt::format(".SH {}\n{}\n", Troff("allranks " + level.path), Troff(level.about));
      text += TroffList(level.arguments) + TroffList(level.options);
    }
  }
  if (command.empty()) return text + ".SH SEE ALSO\nEach command has a page: allranks\\-exec(1).\n";
  return text + ".SH SEE ALSO\nallranks(1)\n";
}

bool WriteManual(const CLI::App& app, const std::string& folder) {
  namespace fs = std::filesystem;
  const std::vector<CommandLevel> levels = LevelsOf(app);
  std::vector<std::pair<std::string, std::string>> files = {
      {"bash/allranks", BashCompletion(levels)},
      {"zsh/_allranks", ZshCompletion(levels)},
      {"fish/allranks.fish", FishCompletion(levels)},
      {"man1/allranks.1", ManPage(levels, "")}};
  for (const CommandLevel::Word& command : levels.front().commands)
    files.emplace_back(fmt::format("man1/allranks-{}.1", command.names.front()),
                       ManPage(levels, command.names.front()));
  for (const auto& [name, text] : files) {
    const fs::path path = fs::path(folder) / name;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    std::ofstream stream(path, std::ios::binary);
    stream << text;
    if (!stream.flush()) {
      fmt::print(stderr, "allranks: cannot write {}\n", path.string());
      return false;
    }
  }
  return true;
}

}  // namespace allranks::cli
