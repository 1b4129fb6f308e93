// What programs mark by NVTX: ranges and marks of host threads, names of threads and streams.
//
// Events come with the next message of their thread (RequestHeader::ranges), with the virtual time
// at which the thread made them: they take none and change nothing. Totals by name are for the
// report; a trace, if there is one, is told of every range when it is over.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "node/hosts.h"
#include "node/time.h"
#include "wire/op.h"

namespace allranks::server {

class Trace;  // trace.h

// Ranges of one name, those of all threads.
struct RangeTotal {
  std::string domain, name;  // domain "": the default one
  std::uint64_t calls = 0;
  node::Time total = 0, longest = 0;
};

class Ranges {
 public:
  using Thread = node::HostThread;
  using Time = node::Time;
  static constexpr std::size_t kMaxNames = 10'000;  // further ones count as one
  static constexpr std::size_t kMaxOpen = 100'000;  // of all threads; further ones are not kept

  explicit Ranges(Trace* trace) : trace_(trace) {}

  // `now`: the thread's clock.
  void Note(Thread thread, const std::vector<wire::RangeEvent>& events, Time now);
  // What is open ends: what the thread has pushed; what the process has started; everything.
  void ThreadEnded(Thread thread, Time at);
  void ProcessEnded(std::int32_t rank, Time at);
  void Finish(Time at);

  // The most virtual time first, with what is open counted until `now`.
  std::vector<RangeTotal> Totals(Time now) const;

 private:
  using Name = std::pair<std::string, std::string>;  // domain, text
  struct Open {
    Name name;
    Time begin = 0;
    Thread thread;  // that has begun it
  };
  using Stack = std::pair<Thread, std::string>;  // of a thread in a domain

  void Close(const Open& open, bool pushed, Time at);
  static void Add(std::map<Name, RangeTotal>& totals, const Open& open, Time at);

  Trace* trace_;  // null: none is wanted
  std::map<Stack, std::vector<Open>> pushed_;
  std::map<std::pair<std::int32_t, std::uint64_t>, Open> started_;  // by process and id
  std::size_t open_ = 0;
  std::map<Name, RangeTotal> totals_;
};

}  // namespace allranks::server
