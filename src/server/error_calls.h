// Handlers of errors that functions of CUDA's runtime and driver return to the program
// (wire/host_messages.h): each place that gets one is a finding.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "node/finding.h"
#include "node/time.h"
#include "server/desk.h"
#include "wire/messages.h"

namespace allranks::server {

class ErrorCalls {
 public:
  using Thread = node::HostThread;
  using Time = node::Time;

  explicit ErrorCalls(Desk& desk) : desk_(desk) {}

  void Handle(Thread thread, const wire::ApiError& message, Time at);
  void Handle(Thread thread, const wire::ApiErrorSeen& message, Time at);

  // What there is so far. It stays, for errors may still be asked for. `explained`: what made a
  // kernel fail is a finding, and the errors that all further calls return say nothing more.
  std::vector<node::Finding> Findings(bool explained) const;

 private:
  struct Error {
    node::Finding finding;
    Thread thread;
    int number = 0;
    bool seen = false;  // its thread has asked for its last error since, or need not
  };
  using Key = std::tuple<Thread, node::SiteId, int>;  // its arguments are those of the first time

  // Whether the program's own code has made the call that failed.
  bool IsOfProgram(const wire::ApiError& message) const;

  Desk& desk_;
  std::vector<Error> errors_;
  std::map<Key, std::size_t> known_;
};

}  // namespace allranks::server
