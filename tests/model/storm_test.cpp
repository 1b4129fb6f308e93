// 1,000 generations over the four protocols while one request in five fails: none is lost, none is
// paid for twice, tokens and dollars are the provider's to the last digit.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fake_provider.h"
#include "model/http_model.h"

namespace allranks::model {
namespace {

using std::chrono::milliseconds;
using testing::Answer;
using testing::Charge;
using testing::FakeProvider;
using testing::Fault;
using testing::Seen;
using testing::Wire;

constexpr int kAsks = 1000;
constexpr int kThreads = 32;

Answer Weather(const Seen& seen) {
  static constexpr Fault kFaults[] = {Fault::kTooMany,     Fault::kServerError, Fault::kOverloaded,
                                      Fault::kReset,       Fault::kHalf,        Fault::kHalfReset,
                                      Fault::kUnended,     Fault::kInvalidJson, Fault::kStall,
                                      Fault::kErrorInside, Fault::kShortLength, Fault::kLongLength,
                                      Fault::kTooMany};
  const auto draw = [&](int salt, std::size_t count, int repeat) {
    return static_cast<std::size_t>(
        testing::Draw(static_cast<unsigned long>(salt), seen.body, repeat) *
        static_cast<double>(count));
  };
  Answer answer;
  answer.text = "Answer " + testing::Sha256(seen.body) + " \u00e9\U0001F600\n";
  answer.reasoning = draw(1, 2, 0) == 0 ? "" : "thinking \u00e9";
  answer.tokens.input = 100 + draw(2, 900, 0);
  answer.tokens.cached = draw(3, 100, 0);
  answer.tokens.output = 50 + draw(4, 500, 0);
  answer.tokens.reasoning = draw(5, 50, 0);
  static constexpr std::size_t kPieces[] = {0, 1, 5, 100};
  answer.piece = kPieces[draw(6, 4, 0)];
  if (draw(7, 100, seen.repeat) < 20)
    answer.fault = kFaults[draw(8, std::size(kFaults), seen.repeat)];
  if (answer.fault == Fault::kTooMany && draw(9, 2, seen.repeat) == 0)
    answer.retry_after = "retry-after-ms: 5";
  return answer;
}

TEST(Storm, NothingIsLostAndNothingPaidTwice) {
  const FakeProvider provider(Weather);
  const struct {
    Wire wire;
    Protocol protocol;
    bool stream;
  } kWays[] = {{Wire::kResponses, Protocol::kOpenAiResponses, true},
               {Wire::kChat, Protocol::kOpenAiChat, true},
               {Wire::kAnthropic, Protocol::kAnthropic, true},
               {Wire::kGemini, Protocol::kGemini, true},
               {Wire::kChat, Protocol::kOpenAiChat, false}};
  Budget budget(std::numeric_limits<double>::infinity());
  std::vector<std::unique_ptr<Model>> models;
  Price price{.known = true, .input = 3, .cached_input = 0.3, .output = 15};
  for (const auto& way : kWays) {
    Entry entry;
    entry.name = entry.model = "m" + std::to_string(models.size());
    entry.protocol = way.protocol;
    entry.endpoint = provider.Endpoint(way.wire);
    entry.price = price;
    entry.parameters.stream = way.stream;
    entry.concurrency = kThreads;
    entry.retry.attempts = 12;
    entry.retry.base = milliseconds(1);
    entry.retry.cap = milliseconds(10);
    entry.retry.stall = milliseconds(1000);
    models.push_back(MakeHttpModel(entry, "sk-0123456789abcdef", budget, nullptr));
  }

  const Stop stop;
  std::atomic<int> next = 0;
  std::mutex mutex;
  std::map<std::string, Reply> replies;  // by the request's hash
  std::vector<std::string> failures;
  double dollars = 0, wasted = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int number; (number = next++) < kAsks;) {
        Ask ask;
        ask.messages = {{Message::Role::kUser, "Question " + std::to_string(number)}};
        Outcome outcome =
            models[static_cast<std::size_t>(number) % models.size()]->Generate(ask, stop);
        const std::lock_guard lock(mutex);
        if (!outcome) {
          failures.push_back(outcome.error().message);
          continue;
        }
        dollars += outcome->dollars;
        wasted += outcome->wasted_dollars;
        replies[testing::Sha256(outcome->request)] = std::move(*outcome);
      }
    });
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(failures, std::vector<std::string>());
  EXPECT_EQ(provider.complaints(), std::vector<std::string>());
  ASSERT_EQ(replies.size(), static_cast<std::size_t>(kAsks));
  const std::vector<Charge> charges = provider.charges();
  EXPECT_EQ(charges.size(), static_cast<std::size_t>(kAsks));
  double charged = 0;
  for (const Charge& charge : charges) {
    const auto found = replies.find(charge.body_hash);
    ASSERT_NE(found, replies.end());
    const Reply& reply = found->second;
    const Usage usage{charge.tokens.input, charge.tokens.cached, charge.tokens.output,
                      charge.tokens.reasoning};
    EXPECT_EQ(reply.text, "Answer " + charge.body_hash + " \u00e9\U0001F600\n");
    EXPECT_EQ(reply.usage, usage);
    EXPECT_TRUE(reply.usage_known);
    const double cost =
        (static_cast<double>(usage.input - usage.cached_input) * 3 +
         static_cast<double>(usage.cached_input) * 0.3 + static_cast<double>(usage.output) * 15) /
        1e6;
    EXPECT_DOUBLE_EQ(reply.dollars, cost);
    charged += cost;
  }
  EXPECT_NEAR(dollars, charged, 1e-9);
  EXPECT_NEAR(budget.spent(), dollars + wasted, 1e-9);
  // The storm was one.
  const double faults = static_cast<double>(provider.requests().size()) - kAsks;
  EXPECT_GT(faults / static_cast<double>(provider.requests().size()), 0.15);
  EXPECT_GT(provider.most_at_once(), 10);
}

}  // namespace
}  // namespace allranks::model
