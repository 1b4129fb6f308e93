// What is said of an attempt: verdicts in a sentence, the judge's words cut to size, times as a
// table. Part of prompt.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "problem/facts.h"
#include "problem/text.h"

namespace allranks::problem {
namespace {

// Terminals take other control characters as commands.
bool IsShown(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\n' || c == '\t' || (byte >= 0x20 && byte != 0x7f);
}

// Longer than any run of backticks in the texts.
std::string FenceFor(const std::string& a, const std::string& b) {
  std::size_t most = 2;
  for (const std::string* text : {&a, &b}) {
    std::size_t run = 0;
    for (const char c : *text) {
      run = c == '`' ? run + 1 : 0;
      most = std::max(most, run);
    }
  }
  return std::string(most + 1, '`');
}

std::string Ended(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

}  // namespace

const std::vector<std::string>& FeedbackNames() {
  static const std::vector<std::string> kNames = {
      // words
      "verdict", "verdict_means", "text", "log", "fence", "percent", "round", "rounds",
      "rounds_left",
      // flags
      "has_text", "has_log", "has_times", "last_round", "has_reference",
      // tables and their columns
      "times", "name", "call_us", "roofline_us", "roofline_percent", "reference_speedup"};
  return kNames;
}

std::string MeaningOf(const std::string& verdict) {
  static const std::pair<const char*, const char*> kMeanings[] = {
      {"pass", "every output was right, and no rule of the problem or of PTX was broken."},
      {"wrong_result",
       "an output element is wrong, was never written, or was written where nothing "
       "may be."},
      {"race",
       "accesses to the same memory are not ordered by PTX's memory model, or a barrier is "
       "misused."},
      {"deadlock", "every thread waits, and no thread can continue."},
      {"memory_error",
       "a thread accessed an address that is not mapped or not accessible, overwrote an input, or "
       "read memory that was never written."},
      {"crash", "a rank's process died, or a kernel failed."},
      {"timeout", "a kernel or a rank used many times the time that the task needs."},
      {"compile_error", "nvcc or the linker refused the file."},
      {"edit_violation", "the file differs from the template outside of the region to edit."},
      {"forbidden_api",
       "a call, a graph node or a kind of link was used that the problem does not "
       "allow."},
      {"no_communication",
       "results were right, but fewer bytes went over the links than any "
       "algorithm needs."},
      {"impossible", "the calls took less time than the machine needs for the least work."},
      {"tampering", "the program sent messages that only the judge's own code may send."},
      {"unsupported", "the simulated machine lacks an instruction or a function that was used."},
      {"internal_error", "the judge itself failed; the file was not judged."},
      {"no_answer", "the reply had no source file that could be judged."},
  };
  for (const auto& [name, meaning] : kMeanings)
    if (verdict == name) return meaning;
  return "";
}

std::string Printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
      ++i;
      continue;
    }
    const std::size_t length = IsShown(text[i]) ? CharacterAt(text, i) : 0;
    clean += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(i, length);
    i += std::max<std::size_t>(length, 1);
  }
  return clean;
}

std::string Shortened(const std::string& text, std::size_t limit) {
  if (text.size() <= limit) return text;
  constexpr std::size_t kNote = 48;  // "... 18446744073709551615 bytes left out ..." and newlines
  if (limit < 2 * kNote) {
    std::size_t end = limit;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return text.substr(0, end);
  }
  const std::size_t half = (limit - kNote) / 2;
  // The nearest line within half of a half, else the nearest character.
  std::size_t head = text.rfind('\n', half - 1);
  head = head == std::string::npos || head < half / 2 ? half : head + 1;
  while (head > 0 && (static_cast<unsigned char>(text[head]) & 0xc0) == 0x80) --head;
  std::size_t tail = text.find('\n', text.size() - half);
  tail = tail == std::string::npos || tail > text.size() - half / 2 ? text.size() - half : tail + 1;
  while (tail < text.size() && (static_cast<unsigned char>(text[tail]) & 0xc0) == 0x80) ++tail;
  return fmt::format("{}{}... {} bytes left out ...\n{}", text.substr(0, head),
                     head > 0 && text[head - 1] != '\n' ? "\n" : "", tail - head,
                     text.substr(tail));
}

void AddFeedback(const Feedback& feedback, Facts* facts) {
  auto& words = facts->words;
  words["verdict"] = Printable(feedback.verdict);
  words["verdict_means"] = MeaningOf(feedback.verdict);
  words["text"] = Ended(Shortened(Printable(feedback.text), kFeedbackLimit));
  words["log"] = Ended(Shortened(Printable(feedback.log), kFeedbackLimit));
  words["fence"] = FenceFor(words["text"], words["log"]);
  words["percent"] = fmt::format("{:.1f}", 100 * feedback.fraction);
  words["round"] = std::to_string(feedback.round);
  words["rounds"] = std::to_string(feedback.rounds);
  words["rounds_left"] = std::to_string(std::max(feedback.rounds - feedback.round, 0));
  facts->flags["has_text"] = !words["text"].empty();
  facts->flags["has_log"] = !words["log"].empty();
  facts->flags["has_times"] = !feedback.times.empty();
  facts->flags["last_round"] = feedback.rounds - feedback.round <= 1;
  facts->flags["has_reference"] =
      std::any_of(feedback.times.begin(), feedback.times.end(),
                  [](const Feedback::Time& time) { return time.reference_ratio > 0; });
  std::vector<Facts::Row> rows;
  for (const Feedback::Time& time : feedback.times) {
    const double part = time.call_us > 0 ? std::min(1.0, time.roofline_us / time.call_us) : 0;
    rows.push_back(
        {{"name", Printable(time.name)},
         {"call_us", fmt::format("{:.2f}", time.call_us)},
         {"roofline_us", fmt::format("{:.2f}", time.roofline_us)},
         {"roofline_percent", fmt::format("{:.0f}", 100 * part)},
         {"reference_speedup",
          time.reference_ratio > 0 ? fmt::format("{:.2f}", time.reference_ratio) : "unknown"}});
  }
  facts->tables["times"] = std::move(rows);
}

}  // namespace allranks::problem
