// What the tests of models behind HTTP share: an entry for the provider of the tests, and a reply
// whose every figure is known.
#pragma once

#include <chrono>
#include <limits>
#include <string>

#include "fake_provider.h"
#include "model/http_model.h"

namespace allranks::model {

using std::chrono::milliseconds;
using testing::Answer;
using testing::FakeProvider;
using testing::Fault;
using testing::Seen;
using testing::Wire;
using Clock = std::chrono::steady_clock;

inline constexpr Wire kWires[] = {Wire::kResponses, Wire::kChat, Wire::kAnthropic, Wire::kGemini};
inline const double kNoBound = std::numeric_limits<double>::infinity();
// Two-, three- and four-byte characters, and what JSON and events must escape.
inline const std::string kText =
    "caf\u00e9 \u4f60\u597d \U0001F600\n```cuda\nint x = \"a\\n\";\r\n```\n";

inline Protocol ProtocolOf(Wire wire) {
  return wire == Wire::kResponses   ? Protocol::kOpenAiResponses
         : wire == Wire::kChat      ? Protocol::kOpenAiChat
         : wire == Wire::kAnthropic ? Protocol::kAnthropic
                                    : Protocol::kGemini;
}

inline Entry EntryFor(const FakeProvider& provider, Wire wire) {
  Entry entry;
  entry.name = "tested";
  entry.protocol = ProtocolOf(wire);
  entry.model = "m-1";
  entry.endpoint = provider.Endpoint(wire);
  entry.key_variable = "TESTED_KEY";
  entry.price = {.known = true, .input = 1, .cached_input = 0.5, .output = 10};
  entry.parameters.max_output_tokens = 1000;
  entry.retry.base = milliseconds(2);
  entry.retry.cap = milliseconds(20);
  entry.retry.stall = milliseconds(20'000);
  entry.retry.attempts = 4;
  return entry;
}

inline Ask AskFor(const std::string& text) {
  Ask ask;
  ask.messages = {{Message::Role::kSystem, "Be brief."}, {Message::Role::kUser, text}};
  return ask;
}

inline Answer Good(const Seen&) {
  Answer answer;
  answer.text = kText;
  answer.reasoning = "hmm, let me think";
  answer.tokens = {100, 40, 30, 10};
  return answer;
}

// 60 plain at 1, 40 cached at 0.5, 30 out at 10, per million
inline constexpr double kGoodDollars = (60 * 1 + 40 * 0.5 + 30 * 10) / 1e6;

inline Outcome AskOnce(const Entry& entry, Budget budget = Budget(kNoBound),
                       const Ask& ask = AskFor("Hi."),
                       const std::string& key = "sk-0123456789abcdef") {
  const Stop stop;
  return MakeHttpModel(entry, key, std::move(budget), nullptr)->Generate(ask, stop);
}

}  // namespace allranks::model
