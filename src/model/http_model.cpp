// Theory of operation. Generate() makes attempts until one gives a complete reply or none is of
// use. One attempt is: a place under the adaptive limit (model/limit.h); the most that it can cost,
// set aside from the budget; a line in attempts.jsonl, on the disk before a byte is sent; the
// transfer (model/http.h), read as it comes (model/sse.h, model/protocol.h); what it did cost,
// settled; a second line. A complete reply ends everything, whatever the connection does
// afterwards: it is paid for. An incomplete one is classified (model/retry.h); waiting holds
// neither place nor money.
//
// What a broken stream cost nobody says. The provider's own figures are taken as far as they came,
// else what came is counted at four bytes per token, the prompt at
// least, once it was sent and no error came back; one that was cut off for its silence or length
// may have cost the most. It is spent, and called wasted.
//
// The key is in the request's headers only. Everything that leaves this file goes through
// Redacted().
#include "model/http_model.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "base/sha256.h"
#include "model/attempts.h"
#include "model/http.h"
#include "model/limit.h"
#include "model/protocol.h"
#include "model/redact.h"
#include "model/retry.h"
#include "model/sse.h"

namespace allranks::model {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kLongestWhy = 500;

std::uint64_t TokensOf(std::size_t bytes) { return (bytes + 3) / 4; }

std::string HashOf(const std::string& bytes) { return Hex(Sha256(bytes)); }

double Unit() {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(random);
}

std::string Trimmed(std::string text) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && space(text.back())) text.pop_back();
  while (!text.empty() && space(text.front())) text.erase(text.begin());
  return text;
}

// Shortened after the key is out of it, never before: half a key is not found.
std::string OneLine(std::string text) {
  if (text.size() > kLongestWhy) text = text.substr(0, kLongestWhy) + "...";
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return text;
}

struct Attempt {
  HttpResponse response;
  WireReply reply;
  bool complete = false;
  Usage usage;
  bool usage_known = false;
  double dollars = 0;
};

class HttpModel : public Model {
 public:
  HttpModel(const Entry& entry, std::string key, Budget budget, Listener* listener)
      : entry_(entry),
        key_(Trimmed(std::move(key))),
        redactor_({key_}),
        budget_(std::move(budget)),
        listener_(listener),
        protocol_(WireProtocolOf(entry.protocol)),
        limit_(LimitFor(entry.endpoint, entry.model, entry.concurrency)) {}

  Outcome Generate(const Ask& ask, const Stop& stop) override;

  double MostDollars(const std::vector<Message>& messages) const override {
    // A token is a byte at least; what surrounds a message is a few tokens.
    Usage most;
    for (const Message& message : messages) most.input += message.text.size() + 32;
    most.output = static_cast<std::uint64_t>(std::max(0, entry_.parameters.max_output_tokens));
    Usage cached = most;
    cached.cached_input = cached.input;
    return std::max(DollarsOf(entry_.price, most), DollarsOf(entry_.price, cached));
  }

  int concurrency() const override { return std::max(1, entry_.concurrency); }

 private:
  std::string Redacted(std::string text) const { return redactor_(std::move(text)); }
  // False: the stop was requested, or the money is gone.
  bool SetAside(double dollars, const Stop& stop);
  Attempt Send(const std::string& body, const Ask& ask, double most, const Stop& stop) const;
  void Account(const Ask& ask, double most, Attempt* attempt) const;
  Status Record(const Ask& ask, const OrderedJson& line) const;
  Reply ReplyOf(Attempt attempt, const std::string& body) const;

  const Entry entry_;
  const std::string key_;
  const Redactor redactor_;
  Budget budget_;
  Listener* const listener_;
  const WireProtocol& protocol_;
  const std::shared_ptr<Limit> limit_;
};

bool HttpModel::SetAside(double dollars, const Stop& stop) {
  while (!budget_.Reserve(dollars)) {
    // Others have set money aside and will give most of it back: as long as what is spent leaves
    // room, it is not gone.
    if (budget_.spent() + dollars > budget_.limit()) return false;
    if (stop.Sleep(std::chrono::milliseconds(10))) return false;
  }
  return true;
}

Status HttpModel::Record(const Ask& ask, const OrderedJson& line) const {
  return NoteAttempt(ask, line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

Attempt HttpModel::Send(const std::string& body, const Ask& ask, double most,
                        const Stop& stop) const {
  const bool stream = entry_.parameters.stream;
  const std::unique_ptr<ReplyReader> reader = protocol_.NewReader();
  bool events = false;
  SseParser sse([&](const SseParser::Event& event) {
    events = true;
    reader->Event(event.name, event.data);
  });
  HttpRequest request;
  request.url = protocol_.Url(entry_);
  request.headers = protocol_.Headers(key_);
  request.headers.push_back("Content-Type: application/json");
  request.headers.push_back(stream ? "Accept: text/event-stream" : "Accept: application/json");
  request.body = body;
  request.connect = entry_.retry.connect;
  request.stall = entry_.retry.stall;
  request.stall_from_reply = !stream;
  request.total = entry_.retry.total;
  request.largest_body = kLargestRaw;
  if (stream)
    request.on_body = [&](std::string_view piece) {
      sse.Feed(piece);
      return reader->reply().settled();
    };
  Attempt attempt;
  attempt.response = Post(request, stop);
  const bool whole = attempt.response.end == HttpResponse::End::kWhole;
  if (attempt.response.status == 200) {
    if (stream) sse.Finish();
    // A server that does not stream answers with a document.
    if (whole && !events) reader->Document(attempt.response.body);
  }
  attempt.reply = reader->reply();
  if (attempt.response.status != 200 && attempt.response.status != 0)
    attempt.reply.error =
        ParseErrorBody(static_cast<int>(attempt.response.status), attempt.response.body);
  attempt.complete = attempt.reply.complete;
  if (attempt.reply.error && IsRefusal(*attempt.reply.error)) {
    attempt.complete = true;
    attempt.reply.finish = Finish::kRefused;
  }
  Account(ask, most, &attempt);
  return attempt;
}

void HttpModel::Account(const Ask& ask, double most, Attempt* attempt) const {
  const WireReply& reply = attempt->reply;
  const std::size_t came = reply.text.size() + reply.unseen_bytes;
  attempt->usage = reply.usage;
  attempt->usage_known = reply.usage_known;
  const HttpResponse& response = attempt->response;
  const bool charged = response.sent && (response.status == 0 || response.status == 200);
  if (!reply.usage_known && (reply.complete || came > 0 || charged)) {
    std::size_t sent = 0;
    for (const Message& message : ask.messages) sent += message.text.size();
    attempt->usage.input = TokensOf(sent);
    attempt->usage.output = TokensOf(came);
    attempt->usage.reasoning = TokensOf(reply.unseen_bytes);
  } else if (!reply.complete && reply.usage_known && TokensOf(came) > reply.usage.output) {
    attempt->usage.output = TokensOf(came);
    attempt->usage_known = false;
  }
  attempt->dollars = DollarsOf(entry_.price, attempt->usage);
  if (!reply.complete && charged &&
      (response.end == HttpResponse::End::kStalled || response.end == HttpResponse::End::kTooLong))
    attempt->dollars = std::max(attempt->dollars, most);
}

Reply HttpModel::ReplyOf(Attempt attempt, const std::string& body) const {
  Reply reply;
  reply.text = Redacted(std::move(attempt.reply.text));
  reply.finish = attempt.reply.finish;
  reply.usage = attempt.usage;
  reply.usage_known = attempt.usage_known;
  reply.dollars = attempt.dollars;
  reply.served_by = Redacted(std::move(attempt.reply.served_by));
  reply.request = Redacted(body);
  reply.raw = Redacted(std::move(attempt.response.body));
  return reply;
}

Outcome HttpModel::Generate(const Ask& ask, const Stop& stop) {
  double wasted = 0;
  const auto fail = [&](Failure::Kind kind, std::string message) {
    return tl::unexpected(
        Failure{kind, fmt::format("{}: {}", entry_.name, Redacted(std::move(message))), wasted});
  };
  if (key_.find_first_of(std::string("\r\n\0", 3)) != std::string::npos)
    return fail(Failure::Kind::kModel,
                fmt::format("the key in {} contains a line break", entry_.key_variable));
  const std::string body = protocol_.Body(entry_, ask.messages);
  const std::string hash = HashOf(body);
  const double most = MostDollars(ask.messages);
  const int attempts = std::max(1, entry_.retry.attempts);

  for (int number = 1;; ++number) {
    Limit::Clock::time_point entered;
    if (!limit_->Enter(stop, &entered)) return fail(Failure::Kind::kStopped, "stopped");
    const auto leave_unused = [&] { limit_->Leave(entered, Limit::How::kElse); };
    if (!SetAside(most, stop)) {
      leave_unused();
      if (stop.requested()) return fail(Failure::Kind::kStopped, "stopped");
      return fail(Failure::Kind::kBudget,
                  fmt::format("the budget of ${:.2f} is used up (${:.4f} spent, a reply may cost "
                              "${:.4f}): continue with a larger --budget",
                              budget_.limit(), budget_.spent(), most));
    }
    const Status begun = Record(ask, {{"event", "begin"},
                                      {"attempt", number},
                                      {"time", TimeOfDay()},
                                      {"model", entry_.name},
                                      {"request", hash},
                                      {"most", most}});
    if (!begun) {
      budget_.Settle(most, 0);
      leave_unused();
      return fail(Failure::Kind::kOurs, begun.error().message);
    }
    if (listener_ != nullptr) listener_->OnAttempt(entry_.name);

    Attempt attempt = Send(body, ask, most, stop);
    budget_.Settle(most, attempt.dollars);
    Setback setback;
    if (!attempt.complete) {
      setback = Classify(attempt.response, attempt.reply.error, attempt.reply.broken, entry_,
                         std::chrono::system_clock::now());
      setback.why = OneLine(Redacted(std::move(setback.why)));
    }
    const bool again = setback.retry && number < attempts;

    auto not_before = Limit::Clock::time_point();
    if (setback.slow_down && setback.retry && setback.retry_after)
      not_before = Limit::Clock::now() + *setback.retry_after;
    const int limit = limit_->Leave(entered,
                                    attempt.complete    ? Limit::How::kReply
                                    : setback.slow_down ? Limit::How::kTooMuch
                                                        : Limit::How::kElse,
                                    not_before);
    const Status ended =
        Record(ask, {{"event", "end"},
                     {"attempt", number},
                     {"time", TimeOfDay()},
                     {"status", attempt.response.status},
                     {"outcome", attempt.complete                          ? "reply"
                                 : setback.kind == Failure::Kind::kStopped ? "stopped"
                                 : again                                   ? "retry"
                                                                           : "failed"},
                     {"error", setback.why},
                     {"input", attempt.usage.input},
                     {"cached_input", attempt.usage.cached_input},
                     {"output", attempt.usage.output},
                     {"reasoning", attempt.usage.reasoning},
                     {"usage_known", attempt.usage_known},
                     {"dollars", attempt.dollars}});
    if (listener_ != nullptr) listener_->OnLimit(entry_.name, limit);
    if (attempt.complete) {
      // Paid for: a line that could not be written does not change that.
      Reply reply = ReplyOf(std::move(attempt), body);
      reply.attempts = number;
      reply.wasted_dollars = wasted;
      return reply;
    }
    wasted += attempt.dollars;
    if (!ended) return fail(Failure::Kind::kOurs, ended.error().message);
    if (!again) {
      std::string message = setback.why;
      if (setback.retry && number > 1)
        message = fmt::format("{} attempts failed, the last with: {}", number, message);
      if (!setback.remedy.empty()) message += "; " + setback.remedy;
      return fail(setback.kind, std::move(message));
    }
    const auto wait = WaitBefore(number + 1, entry_.retry, setback, Unit());
    if (listener_ != nullptr)
      listener_->OnRetry(entry_.name, setback.why, 1e-3 * static_cast<double>(wait.count()));
    if (stop.Sleep(wait)) return fail(Failure::Kind::kStopped, "stopped");
  }
}

}  // namespace

std::unique_ptr<Model> MakeHttpModel(const Entry& entry, std::string key, Budget budget,
                                     Listener* listener) {
  return std::make_unique<HttpModel>(entry, std::move(key), std::move(budget), listener);
}

}  // namespace allranks::model
