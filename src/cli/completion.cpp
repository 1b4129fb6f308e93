// Completions of bash, zsh and fish. All three find out first which command the words before the
// cursor name; what may follow it is a table. Behind `--` and values of options it is files.
#include <fmt/format.h>

#include "cli/manual.h"

namespace allranks::cli {
namespace {

// In single quotes of a POSIX shell.
std::string Quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

// The steps from one command to the next: " problems list".
std::vector<std::string> Steps(const std::vector<CommandLevel>& levels) {
  std::vector<std::string> steps;
  for (const CommandLevel& level : levels)
    if (!level.path.empty()) steps.push_back(" " + level.path);
  return steps;
}

// A word and what it is about, as zsh's _describe has them.
std::string Described(const std::vector<CommandLevel::Word>& words) {
  std::string text;
  for (const CommandLevel::Word& word : words) {
    for (const std::string& name : word.names) {
      std::string about;
      for (const char c : word.about) about += c == ':' ? "\\:" : std::string(1, c);
      text += " " + Quoted(name + ":" + about);
    }
  }
  return text;
}

std::string Names(const std::vector<CommandLevel::Word>& words, bool with_values) {
  std::string text;
  for (const CommandLevel::Word& word : words) {
    if (with_values && word.value.empty()) continue;
    for (const std::string& name : word.names) text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

std::string Alternatives(const std::vector<std::string>& texts, const char* between) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : between) + Quoted(text);
  return all;
}

}  // namespace

std::string BashCompletion(const std::vector<CommandLevel>& levels) {
  std::string table;
  for (const CommandLevel& level : levels) {
    const std::string words = Names(level.commands, false) + " " + Names(level.options, false);
    table += fmt::format("    {}) words={} values={} ;;\n",
                         Quoted(level.path.empty() ? "" : " " + level.path), Quoted(words),
                         Quoted(Names(level.options, true)));
  }
  return fmt::format(R"(# allranks: completion for bash, written by `allranks docs`.
_allranks() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local path= words= values= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then return; fi
    case "$path ${{COMP_WORDS[i]}}" in
      {}) path+=" ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case $path in
{}  esac
  if [[ " $values " == *" $previous "* ]]; then return; fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _allranks allranks
)",
                     Alternatives(Steps(levels), " | "), table);
}

std::string ZshCompletion(const std::vector<CommandLevel>& levels) {
  std::string table;
  for (const CommandLevel& level : levels) {
    table +=
        fmt::format("    {}) commands=({}) options=({}) values={} ;;\n",
                    Quoted(level.path.empty() ? "" : " " + level.path), Described(level.commands),
                    Described(level.options), Quoted(Names(level.options, true)));
  }
  // `path` is special in zsh.
  return fmt::format(R"(#compdef allranks
# allranks: completion for zsh, written by `allranks docs`.
_allranks() {{
  local trail= values= word
  local -a commands options
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    if [[ $word == -- ]]; then _files; return; fi
    case "$trail $word" in
      {}) trail+=" $word" ;;
    esac
  done
  case $trail in
{}  esac
  if [[ " $values " == *" $words[CURRENT-1] "* ]]; then _files; return; fi
  if (( $#commands )); then _describe -t commands command commands; fi
  _describe -o -t options option options
  if (( ! $#commands )); then _files; fi
}}
_allranks "$@"
)",
                     Alternatives(Steps(levels), " | "), table);
}

std::string FishCompletion(const std::vector<CommandLevel>& levels) {
  // Fish escapes quotes by a backslash.
  const auto quoted = [](const std::string& text) {
    std::string result = "'";
    for (const char c : text) {
      if (c == '\'' || c == '\\') result += '\\';
      result += c;
    }
    return result + "'";
  };
  std::string text = fmt::format(R"(# allranks: completion for fish, written by `allranks docs`.
function __allranks_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        if test "$word" = --
            return 1
        end
        switch "$at $word"
            case {}
                set at "$at $word"
        end
    end
    test "$at" = "$argv[1]"
end
)",
                                 Alternatives(Steps(levels), " "));
  for (const CommandLevel& level : levels) {
    const std::string when =
        quoted(fmt::format("__allranks_at \"{}\"", level.path.empty() ? "" : " " + level.path));
    for (const CommandLevel::Word& command : level.commands)
      text += fmt::format("complete -c allranks -f -n {} -a {} -d {}\n", when,
                          quoted(command.names.front()), quoted(command.about));
    for (const CommandLevel::Word& option : level.options) {
      text += fmt::format("complete -c allranks -n {}{}", when, level.Takes(option) ? " -r" : "");
      for (const std::string& name : option.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      text += fmt::format(" -d {}\n", quoted(option.about));
    }
  }
  return text;
}

}  // namespace allranks::cli
