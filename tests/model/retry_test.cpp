// Which failures are tried again, and when.
#include "model/retry.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "model/limit.h"

namespace allranks::model {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

// Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110, section 5.6.7
const auto kThen = system_clock::from_time_t(784111777);

Entry AnEntry() {
  Entry entry;
  entry.name = "m";
  entry.model = "m-1";
  entry.endpoint = "https://example.org/v1";
  entry.key_variable = "M_KEY";
  return entry;
}

Setback Of(int status, const std::string& body, const std::string& retry_after = "") {
  HttpResponse response;
  response.status = status;
  response.body = body;
  response.retry_after = retry_after;
  return Classify(response, ParseErrorBody(status, body), "", AnEntry(), kThen);
}

TEST(Retry, ByStatus) {
  for (const int status : {408, 409, 425, 429, 500, 502, 503, 504, 520, 529}) {
    const Setback setback = Of(status, "{}");
    EXPECT_TRUE(setback.retry) << status;
    EXPECT_EQ(setback.kind, Failure::Kind::kGaveUp) << status;
    EXPECT_EQ(setback.slow_down, status == 429 || status == 503 || status == 529) << status;
  }
  for (const int status : {301, 401, 402, 403, 404, 405}) {
    EXPECT_FALSE(Of(status, "{}").retry) << status;
    EXPECT_EQ(Of(status, "{}").kind, Failure::Kind::kModel) << status;
  }
  for (const int status : {400, 413, 422, 418}) {
    EXPECT_FALSE(Of(status, "{}").retry) << status;
    EXPECT_EQ(Of(status, "{}").kind, Failure::Kind::kRequest) << status;
  }
}

TEST(Retry, WordsThatChangeWhatAStatusMeans) {
  const char* kNoMoney[] = {
      R"({"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"quota"}})",
      R"({"error":{"type":"insufficient_quota","code":"project_spend_limit_exceeded"}})",
      R"({"type":"error","error":{"type":"rate_limit_error",
          "details":{"error_code":"enforced_spend_limit_reached"}}})"};
  for (const char* body : kNoMoney) {
    EXPECT_FALSE(Of(429, body).retry) << body;
    EXPECT_EQ(Of(429, body).kind, Failure::Kind::kModel) << body;
  }
  EXPECT_TRUE(Of(429, R"({"error":{"type":"tokens","code":"rate_limit_exceeded"}})").retry);
  EXPECT_EQ(Of(400, R"({"type":"error","error":{"type":"invalid_request_error",
                       "message":"Your credit balance is too low to access"}})")
                .kind,
            Failure::Kind::kModel);
  EXPECT_EQ(Of(400, R"([{"error":{"code":400,"status":"INVALID_ARGUMENT",
                       "details":[{"reason":"API_KEY_INVALID"}]}}])")
                .kind,
            Failure::Kind::kModel);
}

// Each remedy says which command, variable or table to look at.
TEST(Retry, RemediesNameWhatHelps) {
  Entry entry = AnEntry();
  entry.name = "mine";
  entry.table = "big";  // --models mine=big
  entry.file = "./models.toml";
  entry.key_variable = "MINE_KEY";
  entry.endpoint = "http://localhost:8000/v1";
  const auto remedy = [&](int status, HttpResponse::End end) {
    HttpResponse response;
    response.status = status;
    response.end = end;
    std::optional<ApiError> error;
    if (status != 0) error = ParseErrorBody(status, "{}");
    return Classify(response, error, "", entry, kThen).remedy;
  };
  using End = HttpResponse::End;
  EXPECT_NE(remedy(401, End::kWhole).find("export MINE_KEY="), std::string::npos);
  for (const char* part : {"`allranks models` lists the known models",
                           "http://localhost:8000/v1 in [models.\"big\"] of ./models.toml;"})
    EXPECT_NE(remedy(404, End::kWhole).find(part), std::string::npos) << remedy(404, End::kWhole);
  for (const char* part : {"server runs", "http://localhost:8000/v1", "./models.toml"})
    EXPECT_NE(remedy(0, End::kConnect).find(part), std::string::npos) << remedy(0, End::kConnect);
  entry.key_variable.clear();
  EXPECT_NE(remedy(401, End::kWhole).find("`key` in [models.\"big\"]"), std::string::npos);
  // Key and endpoint may stand in the table of the provider.
  entry.provider = "acme";
  const std::string tables = "in [models.\"big\"] of ./models.toml or in [providers.acme]";
  for (const std::string& text : {remedy(401, End::kWhole), remedy(404, End::kWhole),
                                  remedy(0, End::kUnusable), remedy(0, End::kConnect)})
    EXPECT_NE(text.find(tables), std::string::npos) << text;
}

TEST(Retry, MessagesOfEveryForm) {
  EXPECT_EQ(ParseErrorBody(500, R"({"error":{"message":"a"}})").message, "a");
  EXPECT_EQ(ParseErrorBody(500, R"({"error":"b"})").message, "b");
  EXPECT_EQ(ParseErrorBody(500, R"({"message":"c"})").message, "c");
  EXPECT_EQ(ParseErrorBody(500, R"({"detail":"d"})").message, "d");
  EXPECT_EQ(ParseErrorBody(500, "<html>e</html>").message, "<html>e</html>");
  EXPECT_EQ(ParseErrorBody(500, "").message, "");
  EXPECT_EQ(ParseErrorBody(500, "[[[[]]]]").status, 500);
  const ApiError gemini =
      ParseErrorBody(429, R"({"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow",
           "details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}]}})");
  EXPECT_EQ(gemini.retry_after, milliseconds(1500));
  EXPECT_EQ(gemini.type, "RESOURCE_EXHAUSTED");
}

TEST(Retry, TransfersThatFailed) {
  using End = HttpResponse::End;
  const auto of = [](End end) {
    HttpResponse response;
    response.end = end;
    response.status = 200;
    response.error = "why";
    return Classify(response, std::nullopt, "", AnEntry(), kThen);
  };
  for (const End end : {End::kWhole, End::kDone, End::kConnect, End::kBroken, End::kStalled})
    EXPECT_TRUE(of(end).retry) << static_cast<int>(end);
  EXPECT_FALSE(of(End::kTooLong).retry);
  EXPECT_EQ(of(End::kStopped).kind, Failure::Kind::kStopped);
  EXPECT_FALSE(of(End::kStopped).retry);
  EXPECT_EQ(of(End::kUnusable).kind, Failure::Kind::kModel);
  EXPECT_FALSE(of(End::kUnusable).retry);
  EXPECT_EQ(of(End::kTooLarge).kind, Failure::Kind::kRequest);
}

TEST(Retry, RetryAfterInEveryForm) {
  const auto of = [](const char* seconds, const char* ms) {
    return RetryAfterOf(seconds, ms, kThen);
  };
  EXPECT_EQ(of("", ""), std::nullopt);
  EXPECT_EQ(of("120", ""), milliseconds(120'000));
  EXPECT_EQ(of("0.25", ""), milliseconds(250));
  EXPECT_EQ(of("20", "1500"), milliseconds(1500));
  EXPECT_EQ(of("Sun, 06 Nov 1994 08:49:57 GMT", ""), milliseconds(20'000));
  EXPECT_EQ(of("Sun, 06 Nov 1994 08:49:07 GMT", ""), std::nullopt);
  EXPECT_EQ(of("soon", ""), std::nullopt);
  EXPECT_EQ(of("-5", ""), std::nullopt);
  EXPECT_GT(of("1e300", ""), milliseconds(1'000'000'000));
}

TEST(Retry, ALongRetryAfterIsAFailureAtOnce) {
  EXPECT_TRUE(Of(429, "{}", "300").retry);
  const Setback setback = Of(429, "{}", "301");
  EXPECT_FALSE(setback.retry);
  EXPECT_EQ(setback.kind, Failure::Kind::kGaveUp);
  EXPECT_NE(setback.remedy.find("301"), std::string::npos);
}

TEST(Retry, WaitsGrowAndAreCapped) {
  RetryPolicy policy;
  policy.base = milliseconds(1000);
  policy.cap = milliseconds(5000);
  Setback setback;
  const double almost = 0.999999;
  EXPECT_EQ(WaitBefore(2, policy, setback, 0), milliseconds(0));
  EXPECT_EQ(WaitBefore(2, policy, setback, 0.5), milliseconds(500));
  EXPECT_EQ(WaitBefore(3, policy, setback, almost), milliseconds(1999));
  EXPECT_EQ(WaitBefore(4, policy, setback, almost), milliseconds(3999));
  EXPECT_EQ(WaitBefore(5, policy, setback, almost), milliseconds(4999));
  EXPECT_EQ(WaitBefore(1000, policy, setback, almost), milliseconds(4999));
  setback.retry_after = milliseconds(7000);
  EXPECT_EQ(WaitBefore(2, policy, setback, 0), milliseconds(7000));
  EXPECT_EQ(WaitBefore(9, policy, setback, 0.5), milliseconds(7500));
}

TEST(Limit, GrowsWithRepliesAndHalvesOncePerRound) {
  Limit limit(64);
  Stop stop;
  const auto enter = [&] {
    Limit::Clock::time_point entered;
    EXPECT_TRUE(limit.Enter(stop, &entered));
    return entered;
  };
  EXPECT_EQ(limit.limit(), 4);
  for (int i = 0; i < 6; ++i) limit.Leave(enter(), Limit::How::kReply);
  EXPECT_EQ(limit.limit(), 10);
  std::vector<Limit::Clock::time_point> round;
  for (int i = 0; i < 10; ++i) round.push_back(enter());
  for (const auto entered : round) limit.Leave(entered, Limit::How::kTooMuch);
  EXPECT_EQ(limit.limit(), 5);  // ten of one round halve it once
  for (int i = 0; i < 5; ++i) limit.Leave(enter(), Limit::How::kReply);
  EXPECT_EQ(limit.limit(), 5);  // 5.9: one per round by now
  limit.Leave(enter(), Limit::How::kReply);
  EXPECT_EQ(limit.limit(), 6);
  for (int i = 0; i < 10; ++i) limit.Leave(enter(), Limit::How::kTooMuch);
  EXPECT_EQ(limit.limit(), 1);
  limit.Leave(enter(), Limit::How::kElse);
  EXPECT_EQ(limit.limit(), 1);
}

TEST(Limit, NobodyBeforeTheTimeThatTheProviderNamed) {
  Limit limit(4);
  Stop stop;
  Limit::Clock::time_point entered;
  ASSERT_TRUE(limit.Enter(stop, &entered));
  const auto until = Limit::Clock::now() + milliseconds(60);
  limit.Leave(entered, Limit::How::kTooMuch, until);
  ASSERT_TRUE(limit.Enter(stop, &entered));
  EXPECT_GE(entered, until);
  limit.Leave(entered, Limit::How::kReply);
}

TEST(Limit, WhoComesFirstGoesFirst) {
  Limit limit(1);
  Stop stop;
  Limit::Clock::time_point entered;
  ASSERT_TRUE(limit.Enter(stop, &entered));
  std::vector<int> order;  // written by whoever is inside, alone
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      Limit::Clock::time_point mine;
      if (!limit.Enter(stop, &mine)) return;
      order.push_back(i);
      limit.Leave(mine, Limit::How::kElse);
    });
    while (limit.waiting() != threads.size()) std::this_thread::yield();
  }
  limit.Leave(entered, Limit::How::kElse);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Limit, AStopEndsTheWait) {
  Limit limit(1);
  Stop stop;
  Limit::Clock::time_point entered, mine;
  ASSERT_TRUE(limit.Enter(stop, &entered));
  std::thread waiting([&] { EXPECT_FALSE(limit.Enter(stop, &mine)); });
  stop.Request();
  waiting.join();
}

TEST(Limit, OneForEachEndpointAndModel) {
  const auto limit = LimitFor("e", "m", 3);
  EXPECT_EQ(LimitFor("e", "m", 5), limit);
  EXPECT_NE(LimitFor("e", "n", 3), limit);
  EXPECT_NE(LimitFor("f", "m", 3), limit);
}

}  // namespace
}  // namespace allranks::model
