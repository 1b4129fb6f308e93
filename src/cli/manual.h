// What an installation tells about the command line: manual pages, and completions for shells.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace allranks::cli {

// A command, or the program itself, with what may follow it.
struct CommandLevel {
  struct Word {
    std::vector<std::string> names;  // of an option all its forms, with dashes
    std::string value;               // what follows an option: `N`, `FILE`; empty: nothing
    std::string about;
  };
  std::string path;  // "", "exec", "problems list"
  std::string about, usage, text;
  std::vector<Word> commands, options, arguments;

  bool Takes(const Word& option) const { return !option.value.empty(); }
};

// All that help lists, the program first.
std::vector<CommandLevel> LevelsOf(const CLI::App& app);

std::string BashCompletion(const std::vector<CommandLevel>& levels);
std::string ZshCompletion(const std::vector<CommandLevel>& levels);
std::string FishCompletion(const std::vector<CommandLevel>& levels);
// In troff's man macros. A page has a command with those below it.
std::string ManPage(const std::vector<CommandLevel>& levels, const std::string& command);

// Writes them below `folder`: man1/, bash/, zsh/, fish/. Says what it cannot write.
bool WriteManual(const CLI::App& app, const std::string& folder);

}  // namespace allranks::cli
