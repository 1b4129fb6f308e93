// What models behind HTTP spend, write down and keep to themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "http_model_tools.h"
#include "temporary_folder.h"

namespace allranks::model {
namespace {

TEST(HttpModel, TheBudgetIsNeverExceededAndUsedAsFarAsItGoes) {
  const FakeProvider provider(Good);
  Entry entry = EntryFor(provider, Wire::kChat);
  entry.parameters.max_output_tokens = 30;
  entry.price = {.known = true, .input = 0, .cached_input = 0, .output = 1e6};  // a token, a dollar
  // Each reply may cost 30 and does: ten fit into 305, and not one more, however many ask at once.
  Budget budget(305);
  const auto model = MakeHttpModel(entry, "", budget, nullptr);
  const Stop stop;
  std::atomic<int> replies = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&, i] {
      const Outcome outcome = model->Generate(AskFor("Hi " + std::to_string(i)), stop);
      if (outcome) ++replies;
      if (!outcome && outcome.error().kind == Failure::Kind::kBudget) ++refused;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(replies, 10);
  EXPECT_EQ(refused, 6);
  EXPECT_EQ(budget.spent(), 300);
  EXPECT_EQ(provider.charges().size(), 10u);
  EXPECT_EQ(provider.requests().size(), 10u);
  EXPECT_EQ(model->MostDollars(AskFor("x").messages), 30);
}

TEST(HttpModel, MoneyThatOthersSetAsideIsWaitedFor) {
  const FakeProvider provider(Good);
  Entry entry = EntryFor(provider, Wire::kChat);
  entry.price = {.known = true, .input = 0, .cached_input = 0, .output = 1e6};
  // At most 1000 each, really 30: all eight fit into 1300, one after the other.
  Budget budget(1300);
  const auto model = MakeHttpModel(entry, "", budget, nullptr);
  const Stop stop;
  std::atomic<int> replies = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      if (model->Generate(AskFor("Hi " + std::to_string(i)), stop)) ++replies;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(replies, 8);
  EXPECT_EQ(budget.spent(), 240);
}

TEST(HttpModel, UsageThatIsNotToldIsEstimated) {
  for (const bool stream : {true, false}) {
    const FakeProvider provider([](const Seen& seen) {
      Answer answer = Good(seen);
      answer.with_usage = false;
      return answer;
    });
    Entry entry = EntryFor(provider, Wire::kChat);
    entry.parameters.stream = stream;
    Budget budget(kNoBound);
    const Outcome outcome = AskOnce(entry, budget);
    ASSERT_TRUE(outcome);
    EXPECT_FALSE(outcome->usage_known);
    // "Be brief." and "Hi.": 12 bytes; 17 of reasoning count as output.
    EXPECT_EQ(outcome->usage.input, 3u);
    EXPECT_EQ(outcome->usage.output, (kText.size() + 17 + 3) / 4);
    EXPECT_DOUBLE_EQ(budget.spent(), outcome->dollars);
    EXPECT_GT(outcome->dollars, 0);
  }
}

TEST(HttpModel, TheKeyIsNowhere) {
  const std::string key = "sk-very/secret-0123456789";
  const TemporaryFolder folder;
  FakeProvider::Options options;
  options.decide = [&](const Seen& seen) {
    Answer answer = Good(seen);
    answer.text = "Your key is " + key + ".";
    answer.message =
        "bad key sk-very\\/secret-0123456789 or " + key + ", " + std::string(3000, 'x');
    if (seen.repeat < 2) answer.fault = Fault::kServerError;
    if (seen.body.find("forbidden") != std::string::npos) answer.fault = Fault::kBadKey;
    return answer;
  };
  const FakeProvider provider(options);
  for (const Wire wire : kWires) {
    Ask ask = AskFor("Hi.");
    ask.folder = folder.path() / NameOf(wire);
    const Outcome good = AskOnce(EntryFor(provider, wire), Budget(kNoBound), ask, key);
    ASSERT_TRUE(good);
    EXPECT_EQ(good->text, "Your key is [key].");
    for (const std::string& text : {good->raw, good->request, good->served_by})
      EXPECT_EQ(text.find("secret-0123"), std::string::npos);
    ask.messages.back().text = "forbidden";
    const Outcome bad = AskOnce(EntryFor(provider, wire), Budget(kNoBound), ask, key);
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().message.find("secret-0123"), std::string::npos);
    const auto lines = ReadWhole(ask.folder / "attempts.jsonl");
    ASSERT_TRUE(lines);
    EXPECT_EQ(lines->find("secret-0123"), std::string::npos);
    EXPECT_NE(lines->find("[key]"), std::string::npos);
  }
  // A word that a local server was given is no secret.
  const Outcome local =
      AskOnce(EntryFor(provider, Wire::kChat), Budget(kNoBound), AskFor("!"), "key");
  ASSERT_TRUE(local);
  EXPECT_NE(local->text.find("Your key is"), std::string::npos);
}

TEST(HttpModel, EachAttemptIsRecordedBeforeAndAfter) {
  const TemporaryFolder folder;
  FakeProvider::Options options;
  std::string seen_before;
  options.decide = [&](const Seen& seen) {
    if (seen.repeat == 0) seen_before = ReadWhole(folder.path() / "attempts.jsonl").value_or("");
    Answer answer = Good(seen);
    if (seen.repeat == 0) answer.fault = Fault::kServerError;
    return answer;
  };
  const FakeProvider provider(options);
  Ask ask = AskFor("Hi.");
  ask.folder = folder.path();
  const Outcome outcome = AskOnce(EntryFor(provider, Wire::kChat), Budget(kNoBound), ask);
  ASSERT_TRUE(outcome);
  const std::string hash = testing::Sha256(outcome->request);
  EXPECT_NE(seen_before.find("\"event\":\"begin\",\"attempt\":1,"), std::string::npos)
      << seen_before;
  EXPECT_NE(seen_before.find(hash), std::string::npos);
  EXPECT_NE(seen_before.find("\"most\":0.010076"), std::string::npos) << seen_before;
  EXPECT_EQ(seen_before.find("\"end\""), std::string::npos);
  const std::string lines = ReadWhole(folder.path() / "attempts.jsonl").value_or("");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4);
  EXPECT_NE(lines.find("\"status\":500,\"outcome\":\"retry\",\"error\":\"500: Internal error\""),
            std::string::npos)
      << lines;
  EXPECT_NE(lines.find("\"outcome\":\"reply\",\"error\":\"\",\"input\":100,\"cached_input\":40,"
                       "\"output\":30,\"reasoning\":10,\"usage_known\":true,\"dollars\":0.00038"),
            std::string::npos)
      << lines;
}

TEST(HttpModel, WhatCannotBeRecordedIsNotSent) {
  const TemporaryFolder folder;
  const FakeProvider provider(Good);
  Ask ask = AskFor("Hi.");
  ask.folder = folder.Write("file", "") / "below";
  const Outcome outcome = AskOnce(EntryFor(provider, Wire::kChat), Budget(kNoBound), ask);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Failure::Kind::kOurs);
  EXPECT_EQ(provider.requests().size(), 0u);
}

}  // namespace
}  // namespace allranks::model
