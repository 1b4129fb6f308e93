// Models behind HTTP against a provider that fails in every way (fake_provider.h).
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "http_model_tools.h"

namespace allranks::model {
namespace {

TEST(HttpModel, EveryProtocolInEveryPiece) {
  for (const Wire wire : kWires) {
    for (const bool stream : {true, false}) {
      for (const std::size_t piece : {0, 1, 2, 3, 7, 1000}) {
        for (const char* line_end : {"\n", "\r\n", "\r"}) {
          if (!stream && (piece != 0 || *line_end == '\r')) continue;
          FakeProvider::Options options;
          options.key = "sk-0123456789abcdef";
          options.decide = [&](const Seen& seen) {
            Answer answer = Good(seen);
            answer.piece = piece;
            answer.line_end = line_end;
            return answer;
          };
          const FakeProvider provider(options);
          Entry entry = EntryFor(provider, wire);
          entry.parameters.stream = stream;
          entry.parameters.effort = "high";
          if (wire != Wire::kAnthropic) entry.parameters.temperature = 0.5;
          Budget budget(kNoBound);
          const Outcome outcome = AskOnce(entry, budget);
          ASSERT_TRUE(outcome) << outcome.error().message;
          EXPECT_EQ(outcome->text, kText);
          EXPECT_EQ(outcome->finish, Finish::kStop);
          EXPECT_TRUE(outcome->usage_known);
          EXPECT_EQ(outcome->usage, (Usage{100, 40, 30, 10}));
          EXPECT_DOUBLE_EQ(outcome->dollars, kGoodDollars);
          EXPECT_DOUBLE_EQ(budget.spent(), kGoodDollars);
          EXPECT_EQ(outcome->attempts, 1);
          EXPECT_EQ(outcome->served_by.rfind("m-1-", 0), 0u);
          EXPECT_EQ(outcome->request, provider.requests().at(0).body);
          EXPECT_EQ(provider.complaints(), std::vector<std::string>());
          EXPECT_EQ(provider.charges().size(), 1u);
        }
      }
    }
  }
}

TEST(HttpModel, EveryFaultThatPasses) {
  for (const Wire wire : kWires) {
    for (const bool stream : {true, false}) {
      for (const Fault fault :
           {Fault::kTooMany, Fault::kServerError, Fault::kOverloaded, Fault::kReset, Fault::kHalf,
            Fault::kHalfReset, Fault::kUnended, Fault::kInvalidJson, Fault::kLongLength,
            Fault::kShortLength, Fault::kErrorInside, Fault::kStall}) {
        if (fault == Fault::kStall && !stream && wire != Wire::kChat) continue;  // it takes time
        FakeProvider::Options options;
        options.decide = [&](const Seen& seen) {
          Answer answer = Good(seen);
          if (seen.repeat < 2) answer.fault = fault;
          return answer;
        };
        const FakeProvider provider(options);
        Entry entry = EntryFor(provider, wire);
        entry.parameters.stream = stream;
        // Where silence is not the fault, a busy machine's is none either.
        if (fault == Fault::kStall) entry.retry.stall = milliseconds(150);
        entry.retry.attempts = 8;
        Budget budget(kNoBound);
        const Outcome outcome = AskOnce(entry, budget);
        ASSERT_TRUE(outcome) << NameOf(wire) << stream << static_cast<int>(fault) << ' '
                             << outcome.error().message;
        EXPECT_EQ(outcome->text, kText);
        if (fault != Fault::kStall) {
          EXPECT_EQ(outcome->attempts, 3);
          EXPECT_EQ(provider.requests().size(), 3u);
          EXPECT_EQ(provider.charges().size(), 1u);
        }
        EXPECT_GE(outcome->attempts, 3);
        EXPECT_DOUBLE_EQ(outcome->dollars, kGoodDollars);
        EXPECT_DOUBLE_EQ(budget.spent(), kGoodDollars + outcome->wasted_dollars);
        // Words came before these failed, so that something was spent.
        if (stream && (fault == Fault::kUnended || fault == Fault::kErrorInside)) {
          EXPECT_GT(outcome->wasted_dollars, 0) << NameOf(wire);
        }
        if (fault == Fault::kServerError || fault == Fault::kTooMany) {
          EXPECT_EQ(outcome->wasted_dollars, 0);
        }
        // Sent twice and never answered: "Be brief." and "Hi." are 3 tokens at $1 per million.
        if (fault == Fault::kReset) {
          EXPECT_DOUBLE_EQ(outcome->wasted_dollars, 2 * 3e-6);
        }
        // Cut off for its silence, it may have cost all: 76 tokens in (a byte each, 32 around each
        // message), 1000 out.
        if (fault == Fault::kStall) {
          EXPECT_NEAR(outcome->wasted_dollars, (outcome->attempts - 1) * (76 + 10'000) / 1e6,
                      1e-12);
        }
      }
    }
  }
}

TEST(HttpModel, FaultsThatNoRepetitionHelps) {
  struct Case {
    Fault fault;
    Failure::Kind kind;
    const char* remedy;
  };
  for (const Wire wire : kWires) {
    for (const Case& one : {Case{Fault::kBadKey, Failure::Kind::kModel, "TESTED_KEY"},
                            Case{Fault::kNoModel, Failure::Kind::kModel, "m-1"},
                            Case{Fault::kTooLong, Failure::Kind::kRequest, "prompt is too long"},
                            Case{Fault::kQuota, Failure::Kind::kModel, "credit"}}) {
      if (wire == Wire::kGemini && one.fault == Fault::kQuota) continue;  // not told apart there
      FakeProvider::Options options;
      options.decide = [&](const Seen&) {
        Answer answer;
        answer.fault = one.fault;
        return answer;
      };
      const FakeProvider provider(options);
      const Outcome outcome = AskOnce(EntryFor(provider, wire));
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().kind, one.kind) << outcome.error().message;
      EXPECT_NE(outcome.error().message.find(one.remedy), std::string::npos)
          << outcome.error().message;
      EXPECT_EQ(provider.requests().size(), 1u) << outcome.error().message;
    }
  }
}

TEST(HttpModel, AFilterIsARefusal) {
  for (const Wire wire : {Wire::kResponses, Wire::kChat}) {
    const FakeProvider provider([](const Seen&) {
      Answer answer;
      answer.fault = Fault::kFiltered;
      return answer;
    });
    Budget budget(kNoBound);
    const Outcome outcome = AskOnce(EntryFor(provider, wire), budget);
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(outcome->finish, Finish::kRefused);
    EXPECT_EQ(outcome->text, "");
    EXPECT_EQ(budget.spent(), 0);
    EXPECT_EQ(provider.requests().size(), 1u);
  }
}

// libcurl would send a request again by itself where a connection that it used before breaks.
TEST(HttpModel, NothingIsSentTwiceUnseen) {
  const FakeProvider provider([](const Seen& seen) {
    Answer answer = Good(seen);
    if (seen.number == 1) answer.fault = Fault::kReset;
    return answer;
  });
  Entry entry = EntryFor(provider, Wire::kChat);
  entry.retry.attempts = 1;
  const auto model = MakeHttpModel(entry, "", Budget(kNoBound), nullptr);
  const Stop stop;
  ASSERT_TRUE(model->Generate(AskFor("one"), stop));
  EXPECT_FALSE(model->Generate(AskFor("two"), stop));
  EXPECT_EQ(provider.requests().size(), 2u);
}

TEST(HttpModel, AServerErrorForEverEndsAtTheCap) {
  FakeProvider::Options options;
  options.decide = [](const Seen&) {
    Answer answer;
    answer.fault = Fault::kServerError;
    return answer;
  };
  const FakeProvider provider(options);
  const Outcome outcome = AskOnce(EntryFor(provider, Wire::kChat));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Failure::Kind::kGaveUp);
  EXPECT_NE(outcome.error().message.find("4 attempts"), std::string::npos);
  EXPECT_EQ(provider.requests().size(), 4u);
}

TEST(HttpModel, NobodyThere) {
  int port = 0;
  {
    port = FakeProvider(Good).port();
  }
  const FakeProvider other(Good);
  Entry entry = EntryFor(other, Wire::kChat);
  entry.endpoint = "http://127.0.0.1:" + std::to_string(port) + "/v1";
  entry.retry.attempts = 2;
  const Outcome outcome = AskOnce(entry);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Failure::Kind::kGaveUp);
}

TEST(HttpModel, RetryAfterIsKept) {
  for (const char* header : {"Retry-After: 0.12", "retry-after-ms: 120"}) {
    FakeProvider::Options options;
    options.decide = [&](const Seen& seen) {
      Answer answer = Good(seen);
      if (seen.repeat == 0) {
        answer.fault = Fault::kTooMany;
        answer.retry_after = header;
      }
      return answer;
    };
    const FakeProvider provider(options);
    const auto begin = Clock::now();
    EXPECT_TRUE(AskOnce(EntryFor(provider, Wire::kAnthropic)));
    EXPECT_GE(Clock::now() - begin, milliseconds(120)) << header;
  }
  FakeProvider::Options options;
  options.decide = [](const Seen&) {
    Answer answer;
    answer.fault = Fault::kTooMany;
    answer.retry_after = "Retry-After: 3600";
    return answer;
  };
  const FakeProvider provider(options);
  const auto begin = Clock::now();
  const Outcome outcome = AskOnce(EntryFor(provider, Wire::kAnthropic));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Failure::Kind::kGaveUp);
  EXPECT_EQ(provider.requests().size(), 1u);
  EXPECT_LT(Clock::now() - begin, milliseconds(30'000));
}

TEST(HttpModel, AStopEndsAStallABackoffAndAWaitForAPlace) {
  for (const int what : {0, 1, 2}) {
    FakeProvider::Options options;
    options.decide = [&](const Seen& seen) {
      Answer answer = Good(seen);
      answer.fault = what == 0 ? Fault::kStall : what == 1 ? Fault::kTooMany : Fault::kSilence;
      if (what == 1) answer.retry_after = "Retry-After: 60";
      return answer;
    };
    const FakeProvider provider(options);
    Entry entry = EntryFor(provider, Wire::kChat);
    entry.retry.stall = milliseconds(60'000);
    entry.concurrency = what == 2 ? 1 : 16;
    const auto model = MakeHttpModel(entry, "", Budget(kNoBound), nullptr);
    Stop stop;
    std::vector<std::thread> threads;
    std::atomic<int> stopped = 0;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        const Outcome outcome = model->Generate(AskFor("Hi."), stop);
        if (!outcome && outcome.error().kind == Failure::Kind::kStopped) ++stopped;
      });
    while (provider.requests().empty()) std::this_thread::sleep_for(milliseconds(5));
    std::this_thread::sleep_for(milliseconds(50));
    const auto begin = Clock::now();
    stop.Request();
    for (std::thread& thread : threads) thread.join();
    EXPECT_LT(Clock::now() - begin, milliseconds(20'000)) << what;
    EXPECT_EQ(stopped, 3) << what;
  }
}

TEST(HttpModel, AReplyThatIsWholeIsNotAskedForAgain) {
  for (const Wire wire : kWires) {
    const FakeProvider provider([](const Seen& seen) {
      Answer answer = Good(seen);
      answer.fault = Fault::kCutAfterEnd;
      return answer;
    });
    const Outcome outcome = AskOnce(EntryFor(provider, wire));
    ASSERT_TRUE(outcome) << NameOf(wire);
    EXPECT_EQ(outcome->text, kText);
    EXPECT_EQ(provider.requests().size(), 1u);
    // Chat says what it charged in an event of its own, after the end.
    EXPECT_EQ(outcome->usage_known, wire != Wire::kChat);
  }
}

TEST(HttpModel, SilenceAfterTheEndIsNotWaitedFor) {
  std::vector<std::thread> threads;  // each waits for a moment
  for (const Wire wire : kWires)
    threads.emplace_back([wire] {
      const FakeProvider provider([](const Seen& seen) {
        Answer answer = Good(seen);
        answer.fault = Fault::kStallAfterEnd;
        return answer;
      });
      const auto begin = Clock::now();
      const Outcome outcome = AskOnce(EntryFor(provider, wire));  // its stall: 20 s
      ASSERT_TRUE(outcome) << NameOf(wire);
      EXPECT_EQ(outcome->text, kText);
      EXPECT_EQ(provider.requests().size(), 1u);
      EXPECT_LT(Clock::now() - begin, milliseconds(10'000));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(HttpModel, AServerThatDoesNotStream) {
  for (const Wire wire : kWires) {
    const FakeProvider provider([](const Seen& seen) {
      Answer answer = Good(seen);
      answer.no_stream = true;
      return answer;
    });
    const Outcome outcome = AskOnce(EntryFor(provider, wire));
    ASSERT_TRUE(outcome) << NameOf(wire) << outcome.error().message;
    EXPECT_EQ(outcome->text, kText);
    EXPECT_EQ(outcome->usage, (Usage{100, 40, 30, 10}));
  }
}

TEST(HttpModel, ConnectionsAreUsedAgain) {
  const FakeProvider provider(Good);
  const auto model =
      MakeHttpModel(EntryFor(provider, Wire::kAnthropic), "", Budget(kNoBound), nullptr);
  const Stop stop;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(model->Generate(AskFor(std::to_string(i)), stop));
  EXPECT_EQ(provider.connections(), 1);
}

TEST(HttpModel, TheLimitFindsWhatTheProviderAllows) {
  FakeProvider::Options options;
  options.capacity = 6;
  options.decide = [](const Seen& seen) {
    Answer answer = Good(seen);
    answer.delay_ms = 10;
    return answer;
  };
  const FakeProvider provider(options);
  Entry entry = EntryFor(provider, Wire::kChat);
  entry.concurrency = 32;
  entry.retry.attempts = 8;
  struct : Listener {
    std::atomic<int> least{1000}, most{0}, retries{0};
    void OnLimit(const std::string&, int n) override {
      if (n > most) most = n;
      if (n < least) least = n;
    }
    void OnRetry(const std::string&, const std::string&, double) override { ++retries; }
  } listener;
  const auto model = MakeHttpModel(entry, "", Budget(kNoBound), &listener);
  const Stop stop;
  std::atomic<int> next = 0, replies = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 32; ++i)
    threads.emplace_back([&] {
      for (int ask; (ask = next++) < 300;)
        if (model->Generate(AskFor(std::to_string(ask)), stop)) ++replies;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(replies, 300);
  EXPECT_EQ(provider.charges().size(), 300u);
  // Without learning, 32 at once against 6 would be refused four times out of five.
  EXPECT_LT(listener.retries, 60);
  EXPECT_GE(listener.least, 2);
  EXPECT_LT(listener.most, 20);
  RecordProperty("retries", listener.retries);
}

}  // namespace
}  // namespace allranks::model
