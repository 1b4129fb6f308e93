// See usage_error.h. CLI11 looks for missing options before it looks for words that it does not
// know, and "A subcommand is required" hides a misspelt one. So unknown words come first here,
// whatever the error is.
#include "cli/usage_error.h"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/words.h"
#include "cli/paths.h"
#include "cli/values.h"

namespace allranks::cli {
namespace {

using Words = std::vector<std::string>;

bool Hidden(const CLI::App* app) { return app->get_group().empty(); }

// "allranks profile show"
std::string Path(const CLI::App* app) {
  const std::string name = app->get_name();
  return app->get_parent() == nullptr ? name : Path(app->get_parent()) + " " + name;
}

std::vector<const CLI::App*> Visible(const CLI::App* app) {
  return app->get_subcommands([](const CLI::App* one) { return !Hidden(one); });
}

Words NamesOf(const std::vector<const CLI::App*>& apps) {
  Words names;
  for (const CLI::App* app : apps) names.push_back(app->get_name());
  return names;
}

Words OptionsOf(const CLI::App* app) {
  Words names;
  for (const CLI::Option* option : app->get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

const CLI::Option* OptionNamed(const CLI::App* app, const std::string& name) {
  const auto all = app->get_options();
  const auto found = std::find_if(all.begin(), all.end(), [&](const CLI::Option* option) {
    return option->check_name(name) || option->get_name() == name;
  });
  return found == all.end() ? nullptr : *found;
}

// The app and those that were named below it.
std::vector<const CLI::App*> Named(const CLI::App& app) {
  std::vector<const CLI::App*> chain = {&app};
  while (!chain.back()->get_subcommands().empty())
    chain.push_back(chain.back()->get_subcommands().front());
  return chain;
}

// All commands that know an option.
void Knowing(const CLI::App* app, const std::string& option, std::vector<const CLI::App*>* found) {
  if (OptionNamed(app, option) != nullptr) found->push_back(app);
  for (const CLI::App* one : Visible(app)) Knowing(one, option, found);
}

std::string UsageOf(const CLI::App* app) {
  const auto* formatter = dynamic_cast<const CLI::Formatter*>(app->get_formatter().get());
  if (formatter == nullptr || app->get_parent() == nullptr)
    return "Usage: allranks SUBCOMMAND [OPTIONS] ...";
  std::string usage = formatter->make_usage(app, "");
  usage.erase(usage.find_last_not_of('\n') + 1);
  return usage;
}

std::string WhereOptions(const CLI::App* app) {
  return fmt::format("`{} --help` lists the options", Path(app));
}

std::string WhereSubcommands(const CLI::App* app) {
  return fmt::format("the subcommands are {}; `{} --help` describes them",
                     Join(NamesOf(Visible(app))), Path(app));
}

// "–devices" → "--devices": dashes that a text processor has made of "--". Otherwise the same.
std::string WithPlainDashes(const std::string& word) {
  static constexpr std::array<std::string_view, 7> kDashes = {
      "\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2015", "\u2212"};
  std::string_view rest = word;
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view dash : kDashes) {
      if (!rest.starts_with(dash)) continue;
      rest.remove_prefix(dash.size());
      again = true;
    }
  }
  if (rest.size() == word.size()) return word;
  rest.remove_prefix(std::min(rest.find_first_not_of('-'), rest.size()));
  return "--" + std::string(rest);
}

// An option that `app` does not have. `named`: the command that was named after it, or null.
std::string ExplainOption(const CLI::App* app, const CLI::App* named, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const auto unknown = [&](const std::string& hint) {
    return fmt::format("{} has no option {}; {}", Path(app), name, hint);
  };
  if (OptionNamed(app, "-" + name) != nullptr)
    return unknown(fmt::format("did you mean -{}?", name));
  if (named != nullptr && OptionNamed(named, name) != nullptr)
    return fmt::format("{0} is an option of `{1}`: write it after the subcommand, `{1} {0} ...`",
                       name, Path(named));
  const CLI::App* root = app;
  while (root->get_parent() != nullptr) root = root->get_parent();
  std::vector<const CLI::App*> others;
  Knowing(root, name, &others);
  // The long name of an option that has only its short one here.
  for (const CLI::App* other : others) {
    for (const std::string& letter : OptionNamed(other, name)->get_snames())
      if (OptionNamed(app, "-" + letter) != nullptr)
        return unknown(fmt::format("here it is -{}", letter));
  }
  const std::string nearest = Nearest(name, OptionsOf(app));
  if (!nearest.empty())
    return unknown(fmt::format("did you mean {}? {}", nearest, WhereOptions(app)));
  if (others.empty()) return unknown(WhereOptions(app));
  // Those next to it first.
  std::stable_partition(others.begin(), others.end(), [&](const CLI::App* other) {
    return other->get_parent() == app || other->get_parent() == app->get_parent();
  });
  Words paths;
  for (const CLI::App* other : others) paths.push_back("`" + Path(other) + "`");
  if (paths.size() > 3) paths.resize(3);
  return unknown(fmt::format("{} has; {}", Join(paths), WhereOptions(app)));
}

bool IsProgram(const std::string& word) {
  return word.find('/') != std::string::npos ||
         (!word.empty() && !WhyNotStarted("./" + word).has_value());
}

std::string WithProgram(const Words& words, const Words& behind) {
  std::string line = "allranks exec --";
  for (const Words* some : {&words, &behind})
    for (const std::string& word : *some) line += " " + word;
  return line;
}

// A word that is no option and that `app` has no place for.
std::string ExplainWord(const CLI::App* app, const Words& words, const Words& behind) {
  const std::string& word = words.front();
  const bool root = app->get_parent() == nullptr;
  if (app->get_name() == "exec")
    return fmt::format("the program follows `--`: `{}`", WithProgram(words, behind));
  if (!Visible(app).empty()) {
    if (root && IsProgram(word))
      return fmt::format("'{}' is not a subcommand; to run a program: `{}`", word,
                         WithProgram(words, behind));
    const Words names = NamesOf(Visible(app));
    return fmt::format("{} has no subcommand '{}'{}; {}", Path(app), word, DidYouMean(word, names),
                       WhereSubcommands(app));
  }
  return fmt::format("'{}' is an extra argument: {} takes no more than its usage says\n{}", word,
                     Path(app), UsageOf(app));
}

std::string ExplainUnknown(const std::vector<const CLI::App*>& chain, std::size_t at,
                           const Words& words, const Words& behind) {
  const CLI::App* app = chain[at];
  const CLI::App* named = at + 1 < chain.size() ? chain.back() : nullptr;
  // An option first: the words around it may be its values.
  for (const std::string& word : words) {
    const std::string plain = WithPlainDashes(word);
    if (plain != word && OptionNamed(app, plain.substr(0, plain.find('='))) != nullptr)
      return fmt::format("'{}' begins with a dash of a text processor; write {}", word, plain);
    if (word.size() > 1 && word[0] == '-') return ExplainOption(app, named, word);
  }
  return ExplainWord(app, words, behind);
}

// "--devices" of "--devices: 1 required but received 2", and of "FILE is required".
std::string Subject(const std::string& message) {
  return message.substr(0, std::min(message.find(": "), message.find(' ')));
}

std::string Required(const CLI::App* app, const std::string& message) {
  if (Hidden(app))
    return fmt::format("{} is started by `allranks exec` and `allranks judge`, not by hand",
                       Path(app));
  if (app->get_require_subcommand_min() > 0 && app->get_subcommands().empty())
    return fmt::format("{} needs a subcommand; {}", Path(app), WhereSubcommands(app));
  const CLI::Option* option = OptionNamed(app, Subject(message));
  if (option == nullptr) return message;
  const std::string text = option->get_option_text();
  const bool positional = !option->nonpositional();
  return fmt::format("{}{} is missing: {}\n{}", option->get_name(),
                     positional || text.empty() ? "" : " " + text, option->get_description(),
                     UsageOf(app));
}

std::string Mismatch(const CLI::App* app, const std::string& message) {
  const CLI::Option* option = OptionNamed(app, Subject(message));
  if (option == nullptr) return message;
  const std::string text = option->get_option_text().empty() ? "VALUE" : option->get_option_text();
  const int most = option->get_items_expected_max();
  if (static_cast<int>(option->count()) > most && most <= 1)
    return fmt::format("{} is given {} times; it takes only one value", option->get_name(),
                       option->count());
  if (option->get_items_expected_min() > 1)
    return fmt::format("{} needs {} values: {} {}", option->get_name(),
                       option->get_items_expected_min(), option->get_name(), text);
  return fmt::format("{0} needs a value: {0} {1}", option->get_name(), text);
}

std::string Conversion(const CLI::App* app, const std::string& message) {
  // "Could not convert: --schedule = first"
  constexpr std::string_view kStart = "Could not convert: ";
  if (!message.starts_with(kStart)) return message;
  const std::string rest = message.substr(kStart.size());
  const std::size_t equals = rest.find(" = ");
  if (equals == std::string::npos) return message;
  const CLI::Option* option = OptionNamed(app, rest.substr(0, equals));
  const std::string type = option == nullptr ? "" : option->get_type_name();
  return fmt::format("{}: expected {}, not '{}'", rest.substr(0, equals),
                     type.starts_with("FLOAT") ? "a number" : "an integer",
                     rest.substr(equals + 3));
}

// What CLI11's own Range says.
std::string Validation(const std::string& message) {
  const std::size_t value = message.find(": Value "), range = message.find(" not in range ");
  if (value == std::string::npos || range == std::string::npos || range < value) return message;
  return fmt::format("{}: expected a number from {}, not '{}'", message.substr(0, value),
                     message.substr(range + 14), message.substr(value + 8, range - value - 8));
}

std::string Explain(const std::vector<const CLI::App*>& chain, const CLI::ParseError& error,
                    const Words& behind) {
  for (std::size_t at = 0; at < chain.size(); ++at) {
    const Words words = chain[at]->remaining();
    if (!words.empty() && !Hidden(chain.back())) return ExplainUnknown(chain, at, words, behind);
  }
  const CLI::App* app = chain.back();
  const std::string message = error.what();
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return Required(app, message);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return Mismatch(app, message);
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) return Conversion(app, message);
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) return Validation(message);
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr)
    return fmt::format("{}: add it, or remove {}", message, Subject(message));
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr)
    return message + ": give one of the two";
  return message;
}

}  // namespace

std::string ExplainUsage(const CLI::App& app, const CLI::ParseError& error,
                         const std::vector<std::string>& behind) {
  const std::vector<const CLI::App*> chain = Named(app);
  std::string text = "allranks: " + Explain(chain, error, behind) + "\n";
  // Where the help is: once, and of the command that is known.
  if (text.find("--help") == std::string::npos && !Hidden(chain.back()))
    text += fmt::format("`{} --help` describes the command.\n", Path(chain.back()));
  return text;
}

void AddCommonChecks(CLI::App* app) {
  for (CLI::App* one : app->get_subcommands([](CLI::App*) { return true; })) {
    if (Hidden(one)) continue;
    for (CLI::Option* option : one->get_options())
      if (option->get_items_expected_max() > 0) option->check(NotEmpty());
    AddCommonChecks(one);
  }
}

std::string ExplainTogether(const CLI::App& app) {
  const std::string same = SameOutputs(*Named(app).back());
  return same.empty() ? "" : "allranks: " + same + "\n";
}

}  // namespace allranks::cli
