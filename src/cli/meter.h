// A line on a terminal that says how far a command has come: done and total, verdicts so far, the
// time that is left. For commands that usually end before anybody asks; `allranks run` has a block
// of its own (progress.h).
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "judge/judge.h"

namespace allranks::cli {

class Meter {
 public:
  struct Form {
    std::string what;  // "judging"
    std::string unit;  // "cases"
    int fd = 2;
    // A command that ends sooner shows nothing.
    std::chrono::milliseconds delay{2000};
  };
  // Draws nothing where `fd` is no terminal.
  explicit Meter(Form form);
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;
  ~Meter();  // erases the line

  // From any thread.
  void AddTotal(int units);
  void Done(const std::string& verdict);  // one unit; empty: it has no verdict
  void Now(const std::string& what);      // what is under way
  // Output of the command itself while the line is away. Runs `print` wherever `fd` leads.
  void Print(const std::function<void()>& print);

 private:
  using Clock = std::chrono::steady_clock;
  void Tick();
  std::string Line() const;
  void Draw();
  void Erase();
  void Write(const std::string& text) const;

  const Form form_;
  const bool shown_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false, drawn_ = false;
  int total_ = 0, done_ = 0;
  Clock::time_point first_;  // when the total became known
  std::map<std::string, int> verdicts_;
  std::string now_;
  std::thread ticker_;
};

// A meter of one judgement.
class JudgeMeter : public judge::Listener {
 public:
  explicit JudgeMeter(Meter::Form form) : meter_(std::move(form)) { meter_.Now("compiling"); }
  void OnCases(int cases) override;
  void OnCase(const judge::CaseResult& result) override;
  void OnSchedule(int number, int count) override;

 private:
  Meter meter_;
};

}  // namespace allranks::cli
