#include "campaign/talk.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace allranks::campaign {
namespace {

using Json = nlohmann::ordered_json;
using model::Message;

// A fence that nothing in `text` closes.
std::string FenceFor(const std::string& text) {
  std::size_t longest = 2, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(longest + 1, '`');
}

double NumberOr0(const Json& json, const char* member) {
  const auto found = json.find(member);
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

std::string WordOr(const Json& json, const char* member, const char* other) {
  const auto found = json.find(member);
  return found != json.end() && found->is_string() ? found->get<std::string>() : other;
}

// The case that is told of: the first visible one that failed, else the first of all; nullptr: none
// did. Cases stand in the order in which they ran, and one that has no verdict was to come next
// when a rank failed to get ready.
const Json* FailedAt(const Json& cases) {
  const Json* first = nullptr;
  for (const Json& one : cases) {
    const std::string verdict = WordOr(one, "verdict", "");
    if (verdict == "pass") continue;
    if (first == nullptr) first = &one;
    if (!verdict.empty() && WordOr(one, "kind", "") == "visible") return &one;
  }
  return first;
}

// What findings say stands in the text of the first visible case that shows them.
std::string VisibleTexts(const Json& cases) {
  std::string texts;
  for (const Json& one : cases) {
    if (WordOr(one, "kind", "") != "visible" || WordOr(one, "verdict", "pass") == "pass") continue;
    texts += (texts.empty() ? "" : "\n") + WordOr(one, "text", "");
  }
  return texts;
}

// Geometric mean over timed cases of min(1, roofline / time): as the score, whatever drawn cases
// do.
double FractionOf(const Json& cases) {
  double sum = 0;
  int count = 0;
  for (const Json& one : cases) {
    if (WordOr(one, "kind", "") != "timed") continue;
    const double call = NumberOr0(one, "call_ns"), roofline = NumberOr0(one, "roofline_ns");
    if (!(call > 0) || !(roofline > 0)) return 0;
    sum += std::log(std::min(1.0, roofline / call));
    ++count;
  }
  return count > 0 ? std::exp(sum / count) : 1;  // nothing is timed: nothing is slow
}

void TakeTimes(const Json& cases, problem::Feedback* feedback) {
  for (const Json& one : cases) {
    if (WordOr(one, "kind", "") != "timed") continue;
    feedback->times.push_back({.name = WordOr(one, "name", ""),
                               .call_us = NumberOr0(one, "call_ns") / 1e3,
                               .roofline_us = NumberOr0(one, "roofline_ns") / 1e3,
                               .reference_ratio = NumberOr0(one, "speedup_vs_reference")});
  }
}

}  // namespace

std::string SaidOf(const problem::Answer& answer, const std::string& reply) {
  if (answer.kind == problem::Answer::Kind::kSource) {
    const std::string source = problem::Shortened(answer.source, kLongestSaid);
    const std::string fence = FenceFor(source);
    const bool ends = !source.empty() && source.back() == '\n';
    return fence + "cuda\n" + source + (ends ? "" : "\n") + fence + "\n";
  }
  // Providers refuse a message without text.
  if (reply.find_first_not_of(" \t\r\n") == std::string::npos) return "(no text)";
  return problem::Shortened(reply, kLongestSaid);
}

std::vector<Message> MessagesOf(const problem::Prompt& prompt,
                                const std::vector<Attempt>& attempts) {
  std::vector<Message> messages;
  if (!prompt.system.empty()) messages.push_back({Message::Role::kSystem, prompt.system});
  messages.push_back({Message::Role::kUser, prompt.task});
  const std::size_t first = attempts.size() - std::min(attempts.size(), kAttemptsShown);
  for (std::size_t i = first; i < attempts.size(); ++i) {
    messages.push_back({Message::Role::kAssistant, attempts[i].said});
    messages.push_back({Message::Role::kUser, attempts[i].feedback});
  }
  return messages;
}

std::string ToJson(const std::vector<Message>& messages) {
  Json json = Json::array();
  for (const Message& message : messages)
    json.push_back({{"role", model::NameOf(message.role)}, {"text", message.text}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Assessment> Assess(const std::string& judge_json, double target) {
  const Json json = Json::parse(judge_json, nullptr, false);
  if (!json.is_object() || !json.contains("cases") || !json["cases"].is_array())
    return Fail("the judge's output is not a judgement");
  const Json& cases = json["cases"];
  Assessment assessment;
  problem::Feedback& feedback = assessment.feedback;
  feedback.verdict = WordOr(json, "verdict", "");
  if (feedback.verdict == "internal_error") {
    assessment.next = Assessment::Next::kInternal;
    return assessment;
  }
  const Json* by = feedback.verdict == "pass" ? nullptr : FailedAt(cases);
  const std::string kind = by == nullptr ? "" : WordOr(*by, "kind", "");
  const bool open_passes = feedback.verdict == "pass" || kind == "drawn";
  if (open_passes) {
    feedback.verdict = "pass";
    feedback.fraction = FractionOf(cases);
    TakeTimes(cases, &feedback);
    feedback.improve = true;
    assessment.next =
        feedback.fraction < target ? Assessment::Next::kImprove : Assessment::Next::kFast;
    return assessment;
  }
  // The whole may have another verdict by what only a drawn case shows.
  if (by != nullptr && !WordOr(*by, "verdict", "").empty())
    feedback.verdict = WordOr(*by, "verdict", "");
  if (kind == "timed") {
    feedback.text = "In the case " + WordOr(*by, "name", "") + ".";
  } else if (kind == "visible" || cases.empty()) {
    // Before the first case there is only the compiler.
    feedback.text = VisibleTexts(cases);
    if (feedback.text.empty()) feedback.text = WordOr(json, "text", "");
    // The log is that of the case at which the judgement ended.
    if (by == nullptr || !by->value("ran", false)) feedback.log = WordOr(json, "log", "");
  }
  return assessment;
}

Assessment NoAnswer(const problem::Answer& answer) {
  Assessment assessment;
  assessment.feedback.verdict = kNoAnswer;
  assessment.feedback.text = answer.text;
  return assessment;
}

std::string LogOf(const std::string& judge_json) {
  const Json json = Json::parse(judge_json, nullptr, false);
  return json.is_object() ? WordOr(json, "log", "") : "";
}

bool IsInternal(const std::string& judge_json) {
  const Json json = Json::parse(judge_json, nullptr, false);
  return json.is_object() && WordOr(json, "verdict", "") == "internal_error";
}

}  // namespace allranks::campaign
