// A model: messages in, a reply out. HTTP providers, commands, recordings and the problems' own
// material are all one of these; who asks does not know which.
//
// Generate() blocks and is called from many threads at once. A provider's whole care for the
// network (retry, rates, stalls) is inside it, and so is the record of each attempt.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop.h"
#include "problem/problem.h"

namespace allranks::model {

struct Message {
  enum class Role { kSystem, kUser, kAssistant };
  Role role = Role::kUser;
  std::string text;
  bool operator==(const Message&) const = default;
};
const char* NameOf(Message::Role role);  // system user assistant

// Tokens as the provider counts and charges them.
struct Usage {
  std::uint64_t input = 0;         // all of the prompt, cached or not
  std::uint64_t cached_input = 0;  // of `input`
  std::uint64_t output = 0;        // all that is charged as output, reasoning too
  std::uint64_t reasoning = 0;     // of `output`
  bool operator==(const Usage&) const = default;
  Usage& operator+=(const Usage& other);
};

enum class Finish {
  kStop,     // the model ended by itself
  kLength,   // the output cap
  kRefused,  // a filter, or the model declined
  kOther,
};
const char* NameOf(Finish finish);  // stop length refused other

struct Reply {
  std::string text;
  Finish finish = Finish::kStop;
  Usage usage;
  bool usage_known = false;   // the provider said it; else estimated from bytes (4 per token)
  double dollars = 0;         // of this reply, by the entry's prices
  double wasted_dollars = 0;  // of attempts that failed after tokens had come, where known
  std::string served_by;      // the model's name as the provider gave it
  std::string request;        // the body as sent, JSON; never a key
  std::string raw;            // the body as received, at most kLargestRaw
  int attempts = 1;
};
inline constexpr std::size_t kLargestRaw = 64u << 20;

struct Failure {
  enum class Kind {
    kStopped,  // the stop was requested
    kBudget,   // no money left: nothing was sent
    kModel,    // nothing will work with this model: key, name, endpoint
    kRequest,  // this request is not taken (too long, malformed): repeating it is of no use
    kGaveUp,   // retried as often as allowed: network, 5xx, 429; may work another day
    kOurs,     // a file could not be written, or the like
  };
  Kind kind = Kind::kGaveUp;
  std::string message;  // with the remedy; no key in it
  double wasted_dollars = 0;
};
const char* NameOf(Failure::Kind kind);  // stopped budget model request gave_up ours

using Outcome = tl::expected<Reply, Failure>;

struct Ask {
  std::vector<Message> messages;
  const problem::Problem* problem = nullptr;
  int sample = 0;  // from 0
  int round = 1;   // from 1
  // Where an attempt is recorded while it is under way (attempts.jsonl: one line when it is sent,
  // one when it ended). Empty: nowhere.
  std::filesystem::path folder;
  // For `command:`: judges the file's text on visible cases and says what the judge says; the stop
  // is requested when nobody waits for it any more. Empty: the command has no such tool.
  std::function<std::string(const std::string& source, const Stop& stop)> check;
  // For `command:`: folders that must not be seen by the command (problems, run, cache).
  std::vector<std::filesystem::path> hidden;
};

// Dollars that a run may still spend. Thread-safe.
class Budget {
 public:
  explicit Budget(double dollars);  // infinity: no bound
  // Sets aside what a request may cost at most; false if that is no longer there.
  bool Reserve(double dollars);
  // What it did cost, in place of what was set aside.
  void Settle(double reserved, double spent);
  // Spent by earlier processes of the same run.
  void AddSpent(double dollars);
  double spent() const;
  double limit() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// What progress shows. Called from any thread.
struct Listener {
  virtual ~Listener() = default;
  virtual void OnAttempt(const std::string& /*model*/) {}
  virtual void OnRetry(const std::string& /*model*/, const std::string& /*why*/,
                       double /*seconds*/) {}
  virtual void OnLimit(const std::string& /*model*/, int /*concurrent*/) {}
};

class Model {
 public:
  virtual ~Model() = default;
  virtual Outcome Generate(const Ask& ask, const Stop& stop) = 0;
  // The most dollars that a reply to these messages can cost: the whole output cap. 0: free.
  virtual double MostDollars(const std::vector<Message>& messages) const = 0;
  // How many may be asked at once at most; adaptive ones start lower.
  virtual int concurrency() const = 0;
};

}  // namespace allranks::model
