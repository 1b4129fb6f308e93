// A provider on 127.0.0.1 for tests: a small HTTP/1.1 server on raw sockets that speaks the four
// protocols (fake_wire.h), checks each request, and fails in every way that networks and providers
// do. What it charges for is counted: a reply whose end was sent.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fake_wire.h"

namespace allranks::model::testing {

struct Charge {
  Wire wire = Wire::kNone;
  std::string body_hash;  // SHA-256
  Tokens tokens;
};

class FakeProvider {
 public:
  struct Options {
    // What a request gets. Called from many threads.
    std::function<Answer(const Seen&)> decide;
    std::string key;   // each request must carry it; empty: none is asked for
    int capacity = 0;  // more at once get 429; 0: no bound
    int port = 0;      // 0: any
    // One line per charge, written before the last bytes are sent: milliseconds since 1970, hash of
    // the body, input tokens, output tokens. Empty: none.
    std::filesystem::path log;
  };
  explicit FakeProvider(Options options);
  explicit FakeProvider(std::function<Answer(const Seen&)> decide);
  ~FakeProvider();  // breaks every connection

  int port() const;
  std::string Endpoint(Wire wire) const;

  std::vector<Seen> requests() const;
  std::vector<Charge> charges() const;
  // What was wrong with requests; they got a 400.
  std::vector<std::string> complaints() const;
  int most_at_once() const;
  int connections() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// An even number from [0, 1) that depends on nothing else: what a test draws is the same each time.
double Draw(unsigned long seed, const std::string& text, int repeat);
std::string Sha256(const std::string& bytes);

}  // namespace allranks::model::testing
