// One POST: its limits.
#include "model/http.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "fake_provider.h"

namespace allranks::model {
namespace {

using std::chrono::milliseconds;
using testing::Answer;
using testing::FakeProvider;
using testing::Fault;
using testing::Seen;
using testing::Wire;
using End = HttpResponse::End;

const std::string kBody =
    R"({"messages":[{"content":"Hi.","role":"user"}],"model":"m","stream":true})";
const std::string kWholeBody = R"({"messages":[{"content":"Hi.","role":"user"}],"model":"m"})";

HttpRequest RequestTo(const FakeProvider& provider, const std::string& body) {
  HttpRequest request;
  request.url = provider.Endpoint(Wire::kChat) + "/chat/completions";
  request.headers = {"Content-Type: application/json"};
  request.body = body;
  request.largest_body = 1 << 20;
  return request;
}

FakeProvider Slow(int ms, Fault fault = Fault::kNone) {
  return FakeProvider([=](const Seen&) {
    Answer answer;
    answer.delay_ms = ms;
    answer.fault = fault;
    answer.retry_after = "ReTry-aFter:  7 ";
    return answer;
  });
}

TEST(Http, StatusHeadersAndBody) {
  const FakeProvider provider = Slow(0, Fault::kTooMany);
  const HttpResponse response = Post(RequestTo(provider, kBody), Stop());
  EXPECT_EQ(response.end, End::kWhole);
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.retry_after, "7");
  EXPECT_NE(response.body.find("Rate limit"), std::string::npos);
}

TEST(Http, ABodyThatIsTooLarge) {
  const FakeProvider provider = Slow(0);
  HttpRequest request = RequestTo(provider, kBody);
  request.largest_body = 100;
  const HttpResponse response = Post(request, Stop());
  EXPECT_EQ(response.end, End::kTooLarge);
  EXPECT_LE(response.body.size(), 100u);
}

TEST(Http, Limits) {
  const FakeProvider provider = Slow(400);
  HttpRequest request = RequestTo(provider, kBody);
  request.stall = milliseconds(50);
  EXPECT_EQ(Post(request, Stop()).end, End::kStalled);
  // Where a reply comes at once, nothing comes before it: that is no silence.
  request = RequestTo(provider, kWholeBody);
  request.stall = milliseconds(50);
  request.stall_from_reply = true;
  EXPECT_EQ(Post(request, Stop()).end, End::kWhole);
  request.total = milliseconds(50);
  EXPECT_EQ(Post(request, Stop()).end, End::kTooLong);
}

TEST(Http, SilenceInTheMiddleOfADocument) {
  const FakeProvider provider = Slow(0, Fault::kStall);
  HttpRequest request = RequestTo(provider, kWholeBody);
  request.stall = milliseconds(50);
  request.stall_from_reply = true;
  EXPECT_EQ(Post(request, Stop()).end, End::kStalled);
}

TEST(Http, NoConnectionAndNoUrl) {
  HttpRequest request;
  request.body = kBody;
  int port = 0;
  {
    port = Slow(0).port();
  }
  request.url = "http://127.0.0.1:" + std::to_string(port) + "/v1/chat/completions";
  EXPECT_EQ(Post(request, Stop()).end, End::kConnect);
  request.url = "file:///etc/passwd";
  const HttpResponse file = Post(request, Stop());
  EXPECT_EQ(file.end, End::kUnusable);
  EXPECT_EQ(file.body, "");
  request.url = "http://";
  EXPECT_EQ(Post(request, Stop()).end, End::kUnusable);
}

}  // namespace
}  // namespace allranks::model
