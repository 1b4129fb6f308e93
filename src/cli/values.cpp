// See values.h.
#include "cli/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/words.h"

namespace allranks::cli {
namespace {

// As CLI11 converts it afterwards, but nothing of it may be left over or wrap round.
bool IsWhole(const std::string& text, std::int64_t low, std::uint64_t high) {
  const bool negative = text.starts_with("-");
  if (text.size() == negative || std::isdigit(static_cast<unsigned char>(text[negative])) == 0)
    return false;
  char* end = nullptr;
  errno = 0;
  const auto read = [&]() -> bool {
    if (negative) {
      const std::int64_t value = std::strtoll(text.c_str(), &end, 0);
      return value >= low && (value < 0 || static_cast<std::uint64_t>(value) <= high);
    }
    const std::uint64_t value = std::strtoull(text.c_str(), &end, 0);
    return value <= high && (low < 0 || value >= static_cast<std::uint64_t>(low));
  };
  return read() && errno == 0 && *end == '\0';
}

bool IsNumber(const std::string& text, double low, double high) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) != 0) return false;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == '\0' && std::isfinite(value) && value >= low && value <= high;
}

// Why a word is none of those, or nothing.
std::string WhyUnknown(const std::string& word, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return "";
  if (word.empty()) return fmt::format("an empty word; expected one of {}", Join(known));
  return fmt::format("'{}' is not one of {}{}", word, Join(known), DidYouMean(word, known));
}

}  // namespace

CLI::Validator Whole(std::int64_t low, std::uint64_t high) {
  const bool open = high == std::numeric_limits<std::uint64_t>::max();
  const std::string expected = open ? fmt::format("an integer of at least {}, of 64 bits", low)
                                    : fmt::format("an integer from {} to {}", low, high);
  return CLI::Validator(
      [=](std::string& text) {
        return IsWhole(text, low, high) ? "" : fmt::format("expected {}, not '{}'", expected, text);
      },
      "");
}

CLI::Validator Number(double low, double high, const std::string& what) {
  const std::string of = what.empty() ? "" : " of " + what;
  const std::string expected =
      std::isinf(high) ? fmt::format("a number{} of at least {:.12g}", of, low)
                       : fmt::format("a number{} from {:.12g} to {:.12g}", of, low, high);
  return CLI::Validator(
      [=](std::string& text) {
        return IsNumber(text, low, high) ? ""
                                         : fmt::format("expected {}, not '{}'", expected, text);
      },
      "");
}

CLI::Validator OneOf(const std::vector<std::string>& known) {
  return CLI::Validator([known](std::string& word) { return WhyUnknown(word, known); },
                        "{" + CLI::detail::join(known, ",") + "}");
}

CLI::Validator NotEmpty() {
  return CLI::Validator(
      [](std::string& text) { return std::string(text.empty() ? "the value is empty" : ""); }, "");
}

CLI::Option* AddWords(CLI::App* command, const std::string& name, std::vector<std::string>* words,
                      const std::vector<std::string>& known, const std::string& what) {
  return command->add_option_function<std::vector<std::string>>(
      name,
      [=](const std::vector<std::string>& groups) {
        words->clear();
        for (const std::string& group : groups) {
          for (std::size_t at = 0; at <= group.size();) {
            const std::size_t end = std::min(group.find(',', at), group.size());
            words->push_back(group.substr(at, end - at));
            if (const std::string why = WhyUnknown(words->back(), known); !why.empty())
              throw CLI::ValidationError(name, why);
            at = end + 1;
          }
        }
      },
      what);
}

}  // namespace allranks::cli
